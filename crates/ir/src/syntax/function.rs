//! Elementary functions.

macro_rules! functions {
    ($($(#[$doc:meta])* $variant:ident, $name:literal, $arity:literal;)*) => {
        /// An elementary function, with the meaning of std's method of the same name.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[allow(missing_docs)]
        pub enum Function { $($(#[$doc])* $variant),* }

        impl Function {
            /// All functions.
            pub const ALL: &'static [Function] = &[$(Function::$variant),*];

            /// The name of the method.
            pub fn name(self) -> &'static str {
                match self { $(Function::$variant => $name),* }
            }

            /// The number of arguments.
            pub fn arity(self) -> usize {
                match self { $(Function::$variant => $arity),* }
            }
        }
    };
}

functions! {
    Sin, "sin", 1; Cos, "cos", 1; Tan, "tan", 1; Asin, "asin", 1; Acos, "acos", 1; Atan, "atan", 1;
    Atan2, "atan2", 2; Sinh, "sinh", 1; Cosh, "cosh", 1; Tanh, "tanh", 1;
    Exp, "exp", 1; Exp2, "exp2", 1; ExpM1, "exp_m1", 1; Ln, "ln", 1; Ln1p, "ln_1p", 1; Log2, "log2", 1;
    Log10, "log10", 1; Powf, "powf", 2; Powi, "powi", 2; Cbrt, "cbrt", 1; Hypot, "hypot", 2; Erf, "erf", 1;
}

impl Function {
    /// Its definition, but for `powi`, whose second argument is an integer.
    pub fn definition(self) -> Option<ebbtide_math::Function> {
        ebbtide_math::Function::from_name(self.name())
    }
}
