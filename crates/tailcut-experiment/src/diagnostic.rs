//! Errors as a reader meets them: what is wrong, where, what was expected, what to do.

use std::fmt;

/// One thing wrong with an experiment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Diagnostic {
    /// Stable code, `TC-E…`; listed in `docs/reference/errors.md`.
    pub code: &'static str,
    /// What is wrong, in one line.
    pub message: String,
    /// File name as given, or `--set KEY=VALUE` for a value from the command line.
    pub file: String,
    /// Line, counted from 1; 0 when the error has no place in a text.
    pub line: usize,
    /// Column in characters, counted from 1.
    pub column: usize,
    /// Dotted path of the key, such as `schemes.RepFlow.replicate.copies`.
    pub key: String,
    /// What would have been right.
    pub expected: Option<String>,
    /// What to do about it.
    pub hint: Option<String>,
    /// The diagnostic as text with the source line and a caret.
    pub rendered: String,
}

/// Everything found wrong with an experiment, first things first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// At least one diagnostic, in the order of their places in the file.
    pub diagnostics: Vec<Diagnostic>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, diagnostic) in self.diagnostics.iter().enumerate() {
            if i > 0 {
                f.write_str("\n\n")?;
            }
            f.write_str(&diagnostic.rendered)?;
        }
        Ok(())
    }
}

impl std::error::Error for Failure {}
