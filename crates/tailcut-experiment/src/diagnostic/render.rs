//! Renders diagnostics as text, in the form that compilers use.

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};

use super::Problem;
use crate::document::Sources;

/// The width in columns. It is fixed, so that the rendered text does not depend on the terminal.
const WIDTH: usize = 120;

/// Returns the code with the component's rule, if there is one: `TC-E100/fat-tree-k`.
pub(super) fn full_code(problem: &Problem) -> String {
    match problem.rule {
        Some(rule) => format!("{}/{rule}", problem.code.text()),
        None => problem.code.text().to_owned(),
    }
}

pub(super) fn render(sources: &Sources, problem: &Problem) -> String {
    let title = Level::ERROR.primary_title(&problem.message).id(full_code(problem));
    let expected = problem.expected.as_ref().map(|e| format!("expected {e}"));
    let mut group = match problem.place {
        Some(place) => {
            let source = &sources.0[place.source];
            let mut annotation = AnnotationKind::Primary.span(place.start..place.end);
            if let Some(expected) = &expected {
                annotation = annotation.label(expected);
            }
            title.element(Snippet::source(&source.text).path(&source.name).annotation(annotation))
        }
        None => {
            let group = Group::with_title(title);
            match &expected {
                Some(expected) => group.element(Level::NOTE.message(expected)),
                None => group,
            }
        }
    };
    if !problem.key.is_empty() {
        group = group.element(Level::NOTE.with_name(Some("key")).message(&problem.key));
    }
    if let Some(hint) = &problem.hint {
        group = group.element(Level::HELP.with_name(Some("hint")).message(hint));
    }
    Renderer::plain().term_width(WIDTH).render(&[group])
}
