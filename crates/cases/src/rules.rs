//! The derivatives that the program of a case brings.
//!
//! A [`Rule`] is built by a plain function, which cannot know the text of a case. So there are as many functions as a case can
//! have derivatives, and each of them reads the text that this thread has for it.

use std::cell::RefCell;

use ebbtide_ir::parts::Collective;
use ebbtide_ir::{Error, Flaw, Outside, Program, Rule, Rules, parse_with};

thread_local! {
    /// The texts of the derivatives of the case that this thread looks at.
    static TEXTS: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// What a program may name, which its own text does not have: derivatives with these texts, and all collectives.
pub(crate) fn outside(texts: &[&str]) -> Result<Outside, String> {
    if texts.len() > BUILD.len() {
        return Err(format!("a case has at most {} derivatives", BUILD.len()));
    }
    TEXTS.set(texts.iter().map(|text| text.to_string()).collect());
    let mut outside = Outside::default();
    let mut rules: Vec<Rule> = Vec::new();
    for (text, build) in texts.iter().zip(BUILD) {
        let name = text.split_once("program ").and_then(|(_, rest)| rest.split_once('('));
        let name = name.ok_or("expected the name of a derivative")?.0.to_string();
        // A few words for as long as the tests run.
        let rule = Rule { name: name.leak(), build, rules: Rules::none };
        outside.rule(rule);
        rules.push(rule);
    }
    for collective in Collective::ALL {
        let name = collective.name().trim_start_matches("parts::");
        let find = |kind: &str| rules.iter().find(|rule| rule.name == format!("{name}_{kind}")).copied();
        let own = Rules { adjoint: find("adjoint"), tangent: find("tangent"), ..Rules::none() };
        outside.operation(collective.operation(own).into());
    }
    Ok(outside)
}

const BUILD: [fn() -> Result<Program, Error>; 4] = [build::<0>, build::<1>, build::<2>, build::<3>];

fn build<const K: usize>() -> Result<Program, Error> {
    let text = TEXTS.with_borrow(|texts| texts.get(K).cloned()).unwrap_or_default();
    let mut outside = Outside::default();
    Collective::ALL.into_iter().for_each(|c| outside.operation(c.operation(Rules::none()).into()));
    parse_with(&text, &outside).map_err(|why| Error::Invalid {
        program: format!("derivative {K} of the case"),
        flaws: vec![Flaw { law: "12", message: why.to_string(), site: None }],
    })
}
