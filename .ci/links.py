#!/usr/bin/env python3
"""Checks the links of the repository's pages: files exist, headings exist. Links into the network are left alone.

    links.py            all Markdown files that git knows
    links.py --book DIR the HTML files of a built book
"""

import html.parser
import pathlib
import re
import subprocess
import sys
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parent.parent


def slug(heading: str) -> str:
    """The anchor that forges and mdBook give a heading."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    text = re.sub(r"[`*_]", "", text).strip().lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


def without_code(text: str) -> str:
    text = re.sub(r"^(```|~~~).*?^\1", "", text, flags=re.S | re.M)
    return re.sub(r"`[^`\n]*`", "", text)


def anchors(page: pathlib.Path) -> set[str]:
    text = re.sub(r"^(```|~~~).*?^\1", "", page.read_text(), flags=re.S | re.M)
    return {slug(heading) for heading in re.findall(r"^#+ +(.*)$", text, flags=re.M)}


def check_markdown() -> list[str]:
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"],
                            cwd=ROOT, capture_output=True, text=True, check=True)
    wrong = []
    for name in listed.stdout.split():
        page = ROOT / name
        if not page.exists():
            continue
        for link in re.findall(r"\]\(([^)\s]+)\)", without_code(page.read_text())):
            if re.match(r"[a-z]+:", link):
                continue
            path, _, anchor = link.partition("#")
            target = (page.parent / urllib.parse.unquote(path)).resolve() if path else page
            if not target.exists():
                wrong.append(f"{name}: {link}: there is no such file")
            elif anchor and target.suffix == ".md" and anchor not in anchors(target):
                wrong.append(f"{name}: {link}: there is no such heading")
    return wrong


class Links(html.parser.HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.ids: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id" and value:
                self.ids.add(value)
            if tag == "a" and name == "href" and value:
                self.links.append(value)


def check_book(folder: pathlib.Path) -> list[str]:
    pages: dict[pathlib.Path, Links] = {}
    for page in folder.resolve().rglob("*.html"):
        pages[page] = Links()
        pages[page].feed(page.read_text())
    wrong = []
    for page, found in pages.items():
        if page.name in {"print.html", "404.html", "toc.html"}:
            continue
        for link in found.links:
            if re.match(r"[a-z]+:", link):
                continue
            path, _, anchor = link.partition("#")
            target = (page.parent / urllib.parse.unquote(path)).resolve() if path else page
            # Links into the code work in the repository alone.
            if not target.is_relative_to(folder.resolve()):
                continue
            if not target.exists():
                wrong.append(f"{page.name}: {link}: there is no such page")
            elif anchor and target in pages and urllib.parse.unquote(anchor) not in pages[target].ids:
                wrong.append(f"{page.name}: {link}: there is no such heading")
    return wrong


def main() -> int:
    wrong = check_book(pathlib.Path(sys.argv[2])) if sys.argv[1:2] == ["--book"] else check_markdown()
    for line in wrong:
        print(line)
    print(f"links: {len(wrong)} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
