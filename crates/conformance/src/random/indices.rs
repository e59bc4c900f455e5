//! Random indices in parallel loops: quotients, remainders, flat indices, guards, triangles, choices.
//!
//! Programs are made without a look at what is safe: about a third of them have conflicts, and many have them for some sizes alone. They
//! are texts, which anybody can read.

use super::generate::Dice;

/// Arrays that a loop reads, each with the length of its dimensions.
const READ: [(&str, &str); 3] = [("x", "30"), ("y", "30"), ("w", "6")];

/// Elements that iterations of one variable usually own, and of two.
const OWN: [&str; 12] = [
    "i",
    "n - 1 - i",
    "2 * i",
    "2 * i + 1",
    "i + h",
    "i * m",
    "(i + h) % n",
    "i / 2 + i % 2 * n",
    "i - i % 2 + 1 - i % 2",
    "i / m * m + m - 1 - i % m",
    "i * (h + 1)",
    "29 - 2 * i",
];
const OWN_OF_TWO: [&str; 9] = [
    "i * m + j",
    "i * n + j",
    "j * n + i",
    "i + j * 4",
    "i * 4 + j",
    "(i * m + j) % 30",
    "i",
    "n - 1 - i + n * j",
    "i / 2 * 4 + i % 2 + 2 * j",
];

const RANGES: [&str; 12] = [
    "0..n", "0..n", "0..m", "1..n", "0..n - 1", "h..n", "0..n / 2", "1..n - 1", "0..h", "0..4", "h..h + m",
    "n - h..n",
];

/// What the writes of a loop do.
#[derive(Clone, Copy)]
enum Write {
    Own { two: bool, kind: usize },
    Shared { kind: usize },
}

/// A program of a seed, with scalars `n`, `m` and `h`, arrays `x`, `y` and `z` of 30 elements, `w` and `u` of 6 by 6, and `loss`.
pub fn program(seed: u64) -> String {
    let mut writer = Indices { dice: Dice::new(seed), variables: Vec::new(), loops: 0 };
    let timed = writer.dice.one_in(2);
    let mut loops = String::new();
    writer.variables.extend(timed.then(|| "t".to_string()));
    for _ in 0..1 + writer.dice.below(2) {
        loops += &writer.parallel();
    }
    if timed {
        loops = format!("for t in 0..2 {{\n{loops}}}\n");
    }
    format!(
        "program p(x: &mut Array1<f64>, y: &Array1<f64>, w: &Array2<f64>, z: &mut Array1<f64>, u: &mut Array2<f64>,
    n: usize, m: usize, h: usize, loss: &mut Array0<f64>) {{
{loops}for i in par(0..30) {{ loss[[]] += x[i] * x[i] * (1.0 + 0.1 * (i as f64)) + z[i] * y[i]; }}
for (i, j) in par(0..6, 0..6) {{ loss[[]] += u[[i, j]] * w[[j, i]]; }}
}}"
    )
}

struct Indices {
    dice: Dice,
    /// Those in scope; likely ones are in it more than once.
    variables: Vec<String>,
    /// How many inner loops there are.
    loops: usize,
}

impl Indices {
    fn variable(&mut self) -> String {
        self.dice.pick(&self.variables)
    }

    fn atom(&mut self) -> String {
        match self.dice.below(10) {
            0 => self.dice.below(4).to_string(),
            1 => self.dice.pick(&["n", "m", "h"]).to_string(),
            2 => format!("(n - 1 - {})", self.variable()),
            _ => self.variable(),
        }
    }

    /// A number. The depth of recursion is small.
    fn number(&mut self, depth: usize) -> String {
        if depth == 0 {
            return self.atom();
        }
        let a = self.number(depth - 1);
        match self.dice.below(22) {
            0 | 1 => format!("({a} + {})", self.number(depth - 1)),
            2 => format!("({a} - {})", self.atom()),
            3 => format!("(2 * {a})"),
            4 => format!("(3 * {a} + {})", self.dice.below(4)),
            5 => format!("({a} / 2)"),
            6 => format!("({a} / 3)"),
            7 => format!("({a} % 2)"),
            8 => format!("({a} % 3)"),
            9 => {
                let (by, of) =
                    (self.dice.pick(&["1", "h", "n - 1", "2"]), self.dice.pick(&["n", "m", "h", "4"]));
                format!("(({a} + {by}) % {of})")
            }
            10 => format!("{a}.min({})", self.number(depth - 1)),
            11 => format!("{a}.max({})", self.number(depth - 1)),
            12 => format!("select({}, {a}, {})", self.condition(), self.number(depth - 1)),
            13 => format!("({a} * m + {})", self.atom()),
            14 => format!("({a} * h + {})", self.atom()),
            15 => format!("({a} * 4 + {} % 4)", self.atom()),
            16 => format!("({a} + h)"),
            17 => format!("({a} - 1)"),
            18 => format!("({a} + 1)"),
            19 => format!("{a}.rem_euclid(n)"),
            20 => format!("({a} / m * m + {})", self.variable()),
            _ => a,
        }
    }

    fn index(&mut self, length: &str) -> String {
        let depth = self.dice.below(3);
        let number = self.number(depth);
        match self.dice.below(6) {
            0 => format!("{number}.max(0).min({length} - 1)"),
            1 => format!("{number}.rem_euclid({length})"),
            2 => format!("({number} + 6)"),
            _ => number,
        }
    }

    fn condition(&mut self) -> String {
        let depth = self.dice.below(2);
        let a = self.number(depth);
        match self.dice.below(8) {
            0 => format!("{a} % 2 == {}", self.dice.below(2)),
            1 => format!("({a} + {}) % 2 == h % 2", self.variable()),
            _ => format!("{a} {} {}", self.dice.pick(&["<", "<=", ">", ">=", "==", "!="]), self.atom()),
        }
    }

    fn element(&mut self, arrays: &[(&str, &str)]) -> String {
        match self.dice.pick(arrays) {
            ("w", length) => format!("w[[{}, {}]]", self.index(length), self.index(length)),
            (array, length) => format!("{array}[{}]", self.index(length)),
        }
    }

    fn value(&mut self, arrays: &[(&str, &str)]) -> String {
        let a = self.element(arrays);
        match self.dice.below(4) {
            0 => format!("0.5 * {a}"),
            1 => format!("{a} * {} + 0.25", self.element(arrays)),
            2 => {
                let b = self.element(arrays);
                format!("{a} - {b} * {b}")
            }
            _ => format!("{a} * (0.1 + {} as f64)", self.variable()),
        }
    }

    fn write(&mut self, how: Write) -> String {
        match how {
            Write::Own { two, kind } => {
                let own = if two { self.dice.pick(&OWN_OF_TWO) } else { self.dice.pick(&OWN) };
                let at = if self.dice.one_in(4) { self.index("30") } else { own.to_string() };
                let value = self.value(if kind == 0 { &READ } else { &READ[1..] });
                match kind {
                    1 => format!("x[{at}] = x[{at}] * ({value});"),
                    _ => format!("x[{at}] {} {value};", self.dice.pick(&["=", "=", "=", "+="])),
                }
            }
            Write::Shared { kind } => {
                let value = self.value(&READ);
                match kind {
                    0 => format!("loss[[]] += {value};"),
                    1 => format!("z[{}] += {value};", self.index("30")),
                    2 => {
                        let at = self.index("30");
                        format!("z[{at}].{}({value});", self.dice.pick(&["min_assign", "max_assign"]))
                    }
                    _ => format!("u[[{}, {}]] += {value};", self.index("6"), self.index("6")),
                }
            }
        }
    }

    /// Statements around writes. The depth of recursion is small.
    fn body(&mut self, depth: usize, how: Write) -> String {
        match self.dice.below(if depth == 0 { 3 } else { 8 }) {
            3 | 4 => {
                let condition = self.condition();
                let then = self.body(depth - 1, how);
                if !self.dice.one_in(3) {
                    return format!("if {condition} {{\n{then}}}\n");
                }
                format!("if {condition} {{\n{then}}} else {{\n{}}}\n", self.body(depth - 1, how))
            }
            5 | 6 => {
                self.loops += 1;
                let variable = format!("c{}", self.loops);
                let range = match self.dice.below(5) {
                    0 => format!("0..{}", self.variable()),
                    1 => format!("{} + 1..n", self.variable()),
                    2 => "0..m".to_string(),
                    3 => {
                        let first = self.variable();
                        format!("{first}..{first} + h")
                    }
                    _ => "0..3".to_string(),
                };
                self.variables.push(variable.clone());
                let inner = self.body(depth - 1, how);
                self.variables.pop();
                format!("for {variable} in {range} {{\n{inner}}}\n")
            }
            7 => format!("{}{}", self.body(depth - 1, how), self.body(depth - 1, how)),
            _ => format!("{}\n", self.write(how)),
        }
    }

    fn parallel(&mut self) -> String {
        let (two, owns, kind) = (self.dice.one_in(2), self.dice.one_in(2), self.dice.below(4));
        let outer = self.variables.clone();
        let head = match two {
            true => format!("for (i, j) in par({}, {})", self.dice.pick(&RANGES), self.dice.pick(&RANGES)),
            false => format!("for i in par({})", self.dice.pick(&RANGES)),
        };
        let own = if two { ["i", "j"] } else { ["i", "i"] };
        self.variables.extend(own.iter().chain(&own).map(ToString::to_string));
        let body = self.body(2, if owns { Write::Own { two, kind } } else { Write::Shared { kind } });
        self.variables = outer;
        format!("{head} {{\n{body}}}\n")
    }
}
