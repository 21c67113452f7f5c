//! The codes, which never change their meaning. `docs/reference/errors.md` explains each.

/// Kind of error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Code {
    /// The file cannot be read.
    Unreadable,
    /// The text is not TOML.
    Syntax,
    /// `--set` with something that is no key.
    BadOverride,
    /// A key that does not exist.
    UnknownKey,
    /// A key that must be there is not.
    MissingKey,
    /// A value of another type.
    WrongType,
    /// A word that is not among those possible.
    UnknownWord,
    /// A component that does not exist.
    UnknownKind,
    /// A number outside its range, or a list of the wrong length.
    OutOfRange,
    /// A quantity with a missing, unknown or unfit unit.
    BadQuantity,
    /// A scheme that does not exist.
    UnknownScheme,
    /// Schemes that inherit from each other in a circle.
    LikeCycle,
    /// A sweep key that addresses nothing that can be swept.
    BadSweepKey,
    /// A sweep without values.
    EmptySweep,
    /// The same value twice where it makes the same run twice.
    Duplicate,
    /// A sweep that changes no run.
    IdleSweep,
    /// More runs than anyone means.
    TooManyRuns,
    /// Parameters that a component cannot realise, alone or together.
    Unrealisable,
}

impl Code {
    /// Every code.
    pub const ALL: [Code; 18] = [
        Code::Unreadable,
        Code::Syntax,
        Code::BadOverride,
        Code::UnknownKey,
        Code::MissingKey,
        Code::WrongType,
        Code::UnknownWord,
        Code::UnknownKind,
        Code::OutOfRange,
        Code::BadQuantity,
        Code::UnknownScheme,
        Code::LikeCycle,
        Code::BadSweepKey,
        Code::EmptySweep,
        Code::Duplicate,
        Code::IdleSweep,
        Code::TooManyRuns,
        Code::Unrealisable,
    ];

    /// The code as it is shown.
    pub const fn text(self) -> &'static str {
        match self {
            Code::Unreadable => "TC-E001",
            Code::Syntax => "TC-E002",
            Code::BadOverride => "TC-E003",
            Code::UnknownKey => "TC-E010",
            Code::MissingKey => "TC-E011",
            Code::WrongType => "TC-E012",
            Code::UnknownWord => "TC-E013",
            Code::UnknownKind => "TC-E014",
            Code::OutOfRange => "TC-E015",
            Code::BadQuantity => "TC-E016",
            Code::UnknownScheme => "TC-E020",
            Code::LikeCycle => "TC-E021",
            Code::BadSweepKey => "TC-E030",
            Code::EmptySweep => "TC-E031",
            Code::Duplicate => "TC-E032",
            Code::IdleSweep => "TC-E033",
            Code::TooManyRuns => "TC-E034",
            Code::Unrealisable => "TC-E100",
        }
    }
}
