//! Errors for the author of a file: what is wrong, where, what was expected and what to do.

mod code;
mod render;

use std::fmt;

use crate::document::{Sources, Span};

pub use code::Code;

/// An error in an experiment, at a place in one of its sources.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The kind of error.
    pub code: Code,
    /// The component's rule that was broken, such as `fat-tree-k`; shown as part of the code.
    pub rule: Option<&'static str>,
    /// The place of the error; `None` if it has no place in a text.
    pub place: Option<Span>,
    /// What is wrong, in one line.
    pub message: String,
    /// The dotted path of the key.
    pub key: String,
    /// The permitted values, in words that fit after "expected".
    pub expected: Option<String>,
    /// What to do about it.
    pub hint: Option<String>,
}

impl Problem {
    /// Creates a problem at a place, without key, expectation and hint.
    pub fn new(code: Code, place: Span, message: impl Into<String>) -> Problem {
        Problem { place: Some(place), ..Problem::without_place(code, message) }
    }

    /// Creates a problem that has no place in any text.
    pub fn without_place(code: Code, message: impl Into<String>) -> Problem {
        Problem {
            code,
            rule: None,
            place: None,
            message: message.into(),
            key: String::new(),
            expected: None,
            hint: None,
        }
    }

    /// Adds the dotted path of the key.
    #[must_use]
    pub fn key(mut self, key: impl Into<String>) -> Problem {
        self.key = key.into();
        self
    }

    /// Adds the permitted values, in words that fit after "expected".
    #[must_use]
    pub fn expected(mut self, expected: impl Into<String>) -> Problem {
        self.expected = Some(expected.into());
        self
    }

    /// Adds advice.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Problem {
        self.hint = Some(hint.into());
        self
    }

    /// Adds the hint "did you mean …?" if one of `known` is close to `word`.
    #[must_use]
    pub fn did_you_mean<'a>(
        mut self,
        word: &str,
        known: impl IntoIterator<Item = &'a str>,
    ) -> Problem {
        if let Some(near) = tailcut_net::component::did_you_mean(word, known) {
            self.hint = Some(format!("did you mean `{near}`?"));
        }
        self
    }
}

/// A value, or the problem with it.
pub type Checked<T> = Result<T, Box<Problem>>;

/// An error in an experiment, with line and column, rendered as text.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize)]
pub struct Diagnostic {
    /// The stable code, `TC-E…`, which `docs/reference/errors.md` explains.
    pub code: String,
    /// What is wrong, in one line.
    pub message: String,
    /// The file name as given, or `--set` for a value from the command line.
    pub file: String,
    /// The line, counted from 1; 0 if the error has no place in a text.
    pub line: usize,
    /// The column in characters, counted from 1; 0 if the error has no place in a text.
    pub column: usize,
    /// The dotted path of the key, such as `schemes.RepFlow.replicate.copies`.
    pub key: String,
    /// The permitted values, in words that fit after "expected".
    pub expected: Option<String>,
    /// What to do about it.
    pub hint: Option<String>,
    /// The diagnostic as text, with the source line and a caret.
    pub rendered: String,
}

/// All errors found in an experiment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The diagnostics, at least one, in the order of their places.
    pub diagnostics: Vec<Diagnostic>,
}

impl Failure {
    /// Renders the problems as diagnostics, sorted by place and without duplicates.
    pub fn new(sources: &Sources, mut problems: Vec<Problem>) -> Failure {
        problems.sort_by_key(|problem| (problem.place, problem.code));
        problems.dedup_by(|a, b| a.place == b.place && a.code == b.code && a.message == b.message);
        let diagnostics = problems
            .into_iter()
            .map(|problem| {
                let (line, column) = problem.place.map_or((0, 0), |p| sources.line_and_column(p));
                let source = problem.place.map_or(0, |p| p.source);
                Diagnostic {
                    code: render::full_code(&problem),
                    file: sources.0.get(source).map(|s| s.name.clone()).unwrap_or_default(),
                    line,
                    column,
                    rendered: render::render(sources, &problem),
                    message: problem.message,
                    key: problem.key,
                    expected: problem.expected,
                    hint: problem.hint,
                }
            })
            .collect();
        Failure { diagnostics }
    }
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
