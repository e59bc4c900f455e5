"""The examples, the page of the guide and the notebook run."""

import importlib.util
import pathlib
import re
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "python"


def load(name):
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name, most", [("heat_inversion", 0.7), ("control", 0.2), ("mpm", 0.2), ("waveform", 0.2), ("lorenz_reverse", 0.0)])
def test_an_example_reaches_its_goal(name, most, monkeypatch):
    if name in ("heat_inversion", "waveform"):
        pytest.importorskip("scipy")
    monkeypatch.setattr(sys, "argv", [name])
    assert load(name).main() <= most


def test_the_first_example_is_the_pages(capsys):
    page = (ROOT / "docs" / "src" / "python.md").read_text()
    code = re.search(r"```python\n(import numpy.*?)```", page, re.S)[1]
    assert (EXAMPLES / "first.py").read_text().endswith(code)
    load("first")
    assert "0.0412219" in capsys.readouterr().out


def test_the_pages_small_vectors_run(tmp_path):
    page = (ROOT / "docs" / "src" / "python.md").read_text()
    code = re.search(r"```python\n(from ebbtide import Array1, Vec2.*?)```", page, re.S)[1]
    file = tmp_path / "orbits.py"
    file.write_text("import ebbtide as eb\nimport numpy as np\n" + code)
    spec = importlib.util.spec_from_file_location("orbits", file)
    spec.loader.exec_module(importlib.util.module_from_spec(spec))


@pytest.mark.parametrize("page", ["from-difftaichi", "from-tangent", "from-warp"])
def test_what_users_of_other_systems_are_shown_runs(page, tmp_path):
    text = (ROOT / "docs" / "src" / f"{page}.md").read_text()
    file = tmp_path / "shown.py"
    file.write_text(re.search(r"```python\n(import ebbtide.*?)```", text, re.S)[1])
    spec = importlib.util.spec_from_file_location("shown", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.value > 0.0


def test_the_notebook_runs_and_shows_pictures():
    nbclient = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    notebook = nbformat.read(EXAMPLES / "plans.ipynb", as_version=4)
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    shown = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert sum("<svg" in str(output.get("data", {}).get("text/html", "")) for output in shown) == 2
