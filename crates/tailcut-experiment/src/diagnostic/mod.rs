//! Errors as a reader meets them: what is wrong, where, what was expected, what to do.

mod code;
mod render;

use std::fmt;

use crate::document::{Sources, Span};

pub use code::Code;

/// One thing wrong with an experiment, at a place in one of its sources.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// What kind of error.
    pub code: Code,
    /// Which rule of a component, such as `fat-tree-k`; part of the code that is shown.
    pub rule: Option<&'static str>,
    /// Where; none when the error has no place in a text.
    pub place: Option<Span>,
    /// What is wrong, in one line.
    pub message: String,
    /// Dotted path of the key.
    pub key: String,
    /// What would have been right, in words that fit after "expected".
    pub expected: Option<String>,
    /// What to do about it.
    pub hint: Option<String>,
}

impl Problem {
    /// A problem at a place, so far without key, expectation and hint.
    pub fn new(code: Code, place: Span, message: impl Into<String>) -> Problem {
        Problem { place: Some(place), ..Problem::without_place(code, message) }
    }

    /// A problem with no place in any text.
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

    /// Adds what was expected.
    #[must_use]
    pub fn expected(mut self, expected: impl Into<String>) -> Problem {
        self.expected = Some(expected.into());
        self
    }

    /// Adds what to do.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Problem {
        self.hint = Some(hint.into());
        self
    }

    /// Adds "did you mean", when one of `known` is close to `word`.
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

/// A value, or what is wrong with it.
pub type Checked<T> = Result<T, Box<Problem>>;

/// One thing wrong with an experiment, with its place worked out and its text rendered.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize)]
pub struct Diagnostic {
    /// Stable code, `TC-E…`; listed in `docs/reference/errors.md`.
    pub code: String,
    /// What is wrong, in one line.
    pub message: String,
    /// File name as given, or `--set` for a value from the command line.
    pub file: String,
    /// Line, counted from 1; 0 when the error has no place in a text.
    pub line: usize,
    /// Column in characters, counted from 1; 0 when the error has no place in a text.
    pub column: usize,
    /// Dotted path of the key, such as `schemes.RepFlow.replicate.copies`.
    pub key: String,
    /// What would have been right.
    pub expected: Option<String>,
    /// What to do about it.
    pub hint: Option<String>,
    /// The diagnostic as text, with the source line and a caret.
    pub rendered: String,
}

/// Everything found wrong with an experiment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// At least one diagnostic, in the order of their places.
    pub diagnostics: Vec<Diagnostic>,
}

impl Failure {
    /// Works out places and texts. Problems are put in the order of their places, and told once each.
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
