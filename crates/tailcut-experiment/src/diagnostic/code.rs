//! Stable error codes. Their meaning never changes; `docs/reference/errors.md` explains each.

/// The kind of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Code {
    /// The file cannot be read.
    Unreadable,
    /// The text is not TOML.
    Syntax,
    /// `--set` with a key that is not a dotted path.
    BadOverride,
    /// A key that does not exist.
    UnknownKey,
    /// A required key is missing.
    MissingKey,
    /// A value of another type.
    WrongType,
    /// A word that is not one of the permitted ones.
    UnknownWord,
    /// A component that does not exist.
    UnknownKind,
    /// A number outside its range, or a list of the wrong length.
    OutOfRange,
    /// A quantity with a missing, unknown or unsuitable unit.
    BadQuantity,
    /// A scheme that does not exist.
    UnknownScheme,
    /// Schemes that inherit from each other in a cycle.
    LikeCycle,
    /// A sweep key that names nothing that can be swept.
    BadSweepKey,
    /// A sweep without values.
    EmptySweep,
    /// A value given twice, which would make the same run twice.
    Duplicate,
    /// A sweep that changes no run.
    IdleSweep,
    /// More than 100,000 runs.
    TooManyRuns,
    /// Parameters that a component cannot realise, alone or together.
    Unrealisable,
}

impl Code {
    /// All codes, in the order of their numbers.
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

    /// Returns the code as shown, such as `TC-E001`.
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
