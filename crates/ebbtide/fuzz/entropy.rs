//! Choices taken from a string of bytes.

/// What is left of the string; zeros when it is used up.
pub struct Entropy<'a>(pub &'a [u8]);

impl Entropy<'_> {
    pub fn byte(&mut self) -> u8 {
        match self.0.split_first() {
            Some((&first, rest)) => {
                self.0 = rest;
                first
            }
            None => 0,
        }
    }

    pub fn below(&mut self, limit: usize) -> usize {
        let number = usize::from(self.byte()) << 8 | usize::from(self.byte());
        number % limit.max(1)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
