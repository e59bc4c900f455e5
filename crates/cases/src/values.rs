//! Arguments and results of runs in case files: `u = [[1, 2], [3, 4]], n = 3`.

use std::collections::BTreeMap;

use ebbtide_ir::{ArrayId, Literal, Param, Program, Type};

/// By array: its shape and its elements.
pub type Arrays = BTreeMap<ArrayId, (Vec<i64>, Vec<u8>)>;

/// The arguments of a run.
#[derive(Clone, Debug)]
pub struct Given {
    /// The scalars, in order.
    pub scalars: Vec<Literal>,
    /// The arrays.
    pub arrays: Arrays,
}

/// A number, or a list.
enum Tree {
    Number(f64),
    List(Vec<Tree>),
}

/// What a text gives to a program.
pub(super) fn arguments(program: &Program, text: &str) -> Result<Given, String> {
    let mut given = BTreeMap::new();
    let mut rest = text;
    while !rest.trim().is_empty() {
        let (name, after) = rest.split_once('=').ok_or(format!("expected `name = value`, found `{rest}`"))?;
        let (tree, after) = tree(after, 0)?;
        given.insert(name.trim(), tree);
        rest = after.trim_start().trim_start_matches(',');
    }
    let (mut scalars, mut arrays) = (Vec::new(), Arrays::new());
    for param in &program.params {
        let (name, ty) = match param {
            Param::Array(a) => (&program.array(*a).name, program.array(*a).ty),
            Param::Scalar(s) => (&program.scalars[s.index()].name, program.scalars[s.index()].ty),
        };
        let tree = given.remove(name.as_str()).ok_or(format!("the run has no argument `{name}`"))?;
        match (param, tree) {
            (Param::Scalar(_), Tree::Number(number)) => scalars.push(Literal::of(ty, number)),
            (Param::Scalar(_), Tree::List(_)) => return Err(format!("`{name}` is a scalar, not a list")),
            (Param::Array(id), tree) => {
                let (mut shape, mut level) = (Vec::new(), &tree);
                for _ in 0..program.array(*id).rank {
                    let Tree::List(list) = level else {
                        return Err(format!("`{name}` has not the rank of its array"));
                    };
                    shape.push(list.len() as i64);
                    level = list.first().unwrap_or(&Tree::Number(0.0));
                }
                let mut numbers = Vec::new();
                flatten(&tree, &mut numbers);
                if shape.iter().product::<i64>() != numbers.len() as i64 {
                    return Err(format!("the rows of `{name}` differ in length"));
                }
                let bytes = numbers.into_iter().flat_map(|x| {
                    let bits = Literal::of(ty, x).bits();
                    bits.to_le_bytes().into_iter().take(ty.size())
                });
                arrays.insert(*id, (shape, bytes.collect()));
            }
        }
    }
    match given.first_key_value() {
        Some((name, _)) => Err(format!("the program has no parameter `{name}`")),
        None => Ok(Given { scalars, arrays }),
    }
}

fn flatten(tree: &Tree, numbers: &mut Vec<f64>) {
    match tree {
        Tree::Number(number) => numbers.push(*number),
        Tree::List(list) => list.iter().for_each(|tree| flatten(tree, numbers)),
    }
}

/// A number or a list at the front of a text, and what follows it. Arrays have at most six dimensions.
fn tree(text: &str, depth: usize) -> Result<(Tree, &str), String> {
    let text = text.trim_start();
    let Some(mut rest) = text.strip_prefix('[') else {
        let end = text.find([',', ']']).unwrap_or(text.len());
        let number = match text[..end].trim() {
            "true" => 1.0,
            "false" => 0.0,
            digits => digits.parse().map_err(|_| format!("expected a number, found `{digits}`"))?,
        };
        return Ok((Tree::Number(number), &text[end..]));
    };
    if depth == 6 {
        return Err("a list has at most six dimensions".to_string());
    }
    let mut list = Vec::new();
    loop {
        rest = rest.trim_start();
        if let Some(after) = rest.strip_prefix(']') {
            return Ok((Tree::List(list), after));
        }
        let (item, after) = tree(rest, depth + 1)?;
        list.push(item);
        rest = after.trim_start();
        rest = rest.strip_prefix(',').unwrap_or(rest);
        if rest.is_empty() {
            return Err("expected `]` at the end of a list".to_string());
        }
    }
}

/// The elements of an array, in lists.
pub(super) fn shown(ty: Type, shape: &[i64], bytes: &[u8]) -> String {
    let Some((rows, inner)) = shape.split_first() else {
        let mut eight = [0; 8];
        eight[..ty.size().min(bytes.len())].copy_from_slice(&bytes[..ty.size().min(bytes.len())]);
        let literal = Literal::from_bits(ty, u64::from_le_bytes(eight));
        return match ty {
            Type::F32 => format!("{:?}", f32::from_bits(literal.bits() as u32)),
            Type::F64 => format!("{:?}", f64::from_bits(literal.bits())),
            Type::Bool => (literal.bits() != 0).to_string(),
            _ => literal.to_i64().unwrap_or(0).to_string(),
        };
    };
    let size = ty.size() * inner.iter().product::<i64>().max(0) as usize;
    let row = |k: i64| {
        let start = (size * k as usize).min(bytes.len());
        shown(ty, inner, &bytes[start..(start + size).min(bytes.len())])
    };
    format!("[{}]", (0..*rows).map(row).collect::<Vec<_>>().join(", "))
}
