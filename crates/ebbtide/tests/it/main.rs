//! Tests of the language: what programs become, and what is refused.

mod design;
