//! Registries: which kinds a section of the experiment file has, and the state of each at work.
//!
//! [`registry!`] is the one list of a folder's kinds. From a line per kind it writes
//!
//! - the section's enum, `BalanceSpec`, whose parameters are reached as `dyn Strategy`: the enum
//!   dereferences to the trait of its kinds, so that a method of the trait needs no line here;
//! - where kinds have state, an enum of the states, `Balancer`, which dereferences to `dyn Pick`.
//!   Methods named `static` are matched kind by kind instead, without a call through a table:
//!   those that packets or acknowledgements make, where `cargo bench` shows the difference.
//!
//! The ends of connections, whose calls take parameters of their own, use [`static_methods!`]
//! alone.

/// The state of a kind as it is, in place of `Box`, which keeps large states out of the enum.
pub(crate) type Inline<S> = S;

/// Declares the enum of a section of the experiment file, and the enums of its kinds' states.
///
/// ```text
/// registry! {
///     /// Choice of switches among equal-cost paths.
///     pub enum BalanceSpec: Strategy {
///         /// What `tailcut list` prints of the kind.
///         Ecmp(ecmp::Ecmp),
///     }
///     /// The state of every switch's balancer, made by `Strategy::state(layout)`.
///     pub(crate) enum Balancer: Pick = Inline<Strategy::State>, state(layout: Layout<'_>) {
///         static fn pick(&mut self, fork: PickContext<'_>, packet: &mut Packet) -> u32;
///     }
/// }
/// ```
///
/// A kind without parameters stands in brackets before the others, with the value that answers for
/// it: `[None = NoReplication]`. It has no state. A state beyond those of the kinds stands in
/// brackets too: `[Coupled(Coupled)]`.
macro_rules! registry {
    (
        $(#[$about:meta])*
        pub enum $Spec:ident: $Trait:ident
        $([$(#[$bare_about:meta])* $bare:ident $({$($no:tt)*})? = $answers:expr])?
        { $($(#[$kind_about:meta])* $name:ident($parameters:ty),)* }
        $($states:tt)*
    ) => {
        $(#[$about])*
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
        pub enum $Spec {
            $($(#[$bare_about])* $bare $({$($no)*})?,)?
            $($(#[$kind_about])* $name($parameters),)*
        }

        impl ::std::ops::Deref for $Spec {
            type Target = dyn $Trait;
            fn deref(&self) -> &(dyn $Trait + 'static) {
                match self {
                    $($Spec::$bare $({$($no)*})? => &$answers,)?
                    $($Spec::$name(parameters) => parameters,)*
                }
            }
        }

        $crate::registry::states! { $Spec [$($bare $({$($no)*})?)?] [$($name($parameters))*] $($states)* }
    };
}
pub(crate) use registry;

/// Declares the enums of states of [`registry!`], one after another.
macro_rules! states {
    ($Spec:ident $bare:tt $kinds:tt) => {};
    (
        $Spec:ident [$($bare:ident $({$($no:tt)*})?)?] [$($name:ident($parameters:ty))*]
        $(#[$about:meta])*
        $vis:vis enum $State:ident: $Trait:ident = $Wrap:ident<$Made:ident::$Assoc:ident>,
            $make:ident($($argument:ident: $Argument:ty)?)
            $([$(#[$other_about:meta])* $other:ident($Other:ty)])?
        { $($methods:tt)* }
        $($more:tt)*
    ) => {
        $(#[$about])*
        #[derive(Debug, Clone)]
        $vis enum $State {
            $($(#[$other_about])* $other($Other),)?
            $($name($Wrap<<$parameters as $Made>::$Assoc>),)*
        }

        impl $State {
            /// Returns the state of a kind; `None` if the kind has none.
            fn of(spec: &$Spec $(, $argument: $Argument)?) -> Option<$State> {
                $crate::registry::state_of! {
                    $State $Spec [$($bare $({$($no)*})?)?] [$($name($parameters))*]
                    spec, $Made, $Assoc, $make($($argument)?)
                }
            }
        }

        impl ::std::ops::Deref for $State {
            type Target = dyn $Trait;
            fn deref(&self) -> &(dyn $Trait + 'static) {
                match self {
                    $($State::$other(state) => state,)?
                    $($State::$name(state) => {
                        let state: &<$parameters as $Made>::$Assoc = state;
                        state
                    })*
                }
            }
        }

        impl ::std::ops::DerefMut for $State {
            fn deref_mut(&mut self) -> &mut (dyn $Trait + 'static) {
                match self {
                    $($State::$other(state) => state,)?
                    $($State::$name(state) => {
                        let state: &mut <$parameters as $Made>::$Assoc = state;
                        state
                    })*
                }
            }
        }

        $crate::registry::static_methods! { $State [$($other)? $($name)*] $($methods)* }
        $crate::registry::states! { $Spec [$($bare $({$($no)*})?)?] [$($name($parameters))*] $($more)* }
    };
}
pub(crate) use states;

/// Makes the state of a kind.
macro_rules! state_of {
    (
        $State:ident $Spec:ident [$($bare:ident $({$($no:tt)*})?)?] [$($name:ident($parameters:ty))*]
        $spec:ident, $Made:ident, $Assoc:ident, $make:ident $arguments:tt
    ) => {
        match $spec {
            $($Spec::$bare $({$($no)*})? => None,)?
            $($Spec::$name(spec) => {
                let state: Option<<$parameters as $Made>::$Assoc> = spec.$make $arguments.into();
                state.map(|state| $State::$name(state.into()))
            })*
        }
    };
}
pub(crate) use state_of;

/// Calls a method of the state that there is.
macro_rules! call {
    ($State:ident [$($name:ident)*] $this:ident.$method:ident $arguments:tt) => {
        match $this { $($State::$name(state) => state.$method $arguments,)* }
    };
}
pub(crate) use call;

/// Declares methods that are matched kind by kind. The last argument after `static pair` is a state
/// of the same kind; one of another kind is ignored.
macro_rules! static_methods {
    ($State:ident $names:tt) => {};
    (
        $State:ident $names:tt
        $(#[$about:meta])*
        static $vis:vis fn $method:ident(&mut $this:ident $(, $argument:ident: $Argument:ty)*) $(-> $Result:ty)?;
        $($more:tt)*
    ) => {
        impl $State {
            $(#[$about])*
            #[inline]
            $vis fn $method(&mut $this $(, $argument: $Argument)*) $(-> $Result)? {
                $crate::registry::call!($State $names $this.$method($($argument),*))
            }
        }
        $crate::registry::static_methods! { $State $names $($more)* }
    };
    (
        $State:ident $names:tt
        $(#[$about:meta])*
        static $vis:vis fn $method:ident(&$this:ident $(, $argument:ident: $Argument:ty)*) $(-> $Result:ty)?;
        $($more:tt)*
    ) => {
        impl $State {
            $(#[$about])*
            #[inline]
            $vis fn $method(&$this $(, $argument: $Argument)*) $(-> $Result)? {
                $crate::registry::call!($State $names $this.$method($($argument),*))
            }
        }
        $crate::registry::static_methods! { $State $names $($more)* }
    };
    (
        $State:ident [$($name:ident)*]
        $(#[$about:meta])*
        static pair $vis:vis fn $method:ident(&mut $this:ident, $other:ident: &$Other:ty);
        $($more:tt)*
    ) => {
        impl $State {
            $(#[$about])*
            $vis fn $method(&mut $this, $other: &$Other) {
                match ($this, $other) {
                    $(($State::$name(state), $State::$name(other)) => state.$method(other),)*
                    _ => {}
                }
            }
        }
        $crate::registry::static_methods! { $State [$($name)*] $($more)* }
    };
}
pub(crate) use static_methods;
