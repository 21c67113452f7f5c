//! Switches: the memory that their ports share ([`pools`]), and what they tell the far ends of
//! links that bring too much ([`flow_control`]). A new kind of flow control is one file here, one
//! field of [`SwitchSpec`], and its place in [`SwitchSpec::flow_control`].

pub mod flow_control;
pub mod pfc;
pub(crate) mod pools;

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::flow_control::{FlowControl, FlowControlNames};
use self::pfc::Pfc;
use crate::amount::{Amount, Limit};
use crate::component::SpecError;

/// Parameters of every switch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SwitchSpec {
    /// Memory that all ports of a switch share, in bytes ("4MB" in RepNet's testbed); "unlimited"
    /// gives each port a buffer of its own.
    pub shared_buffer: Limit,
    /// Share of the free memory that one port may take: its dynamic threshold is `alpha` times the
    /// free part.
    pub alpha: f64,
    /// Priority flow control: links are paused instead of packets dropped; none unless written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pfc: Option<Pfc>,
}

impl Default for SwitchSpec {
    fn default() -> Self {
        SwitchSpec { shared_buffer: Limit::Unlimited, alpha: 1.0, pfc: None }
    }
}

impl SwitchSpec {
    /// Checks the parameters.
    ///
    /// # Errors
    /// When a buffer is not counted in bytes, or would hold nothing.
    pub fn check(&self) -> Result<(), SpecError> {
        match self.shared_buffer {
            Limit::AtMost(Amount::Packets(n)) => {
                let message = format!("shared_buffer = \"{n}packets\": memory is counted in bytes");
                return Err(SpecError::new("shared-buffer-unit", "shared_buffer", message)
                    .hint("write for example \"4MB\""));
            }
            Limit::AtMost(Amount::Bytes(bytes)) if bytes < 1_538 => {
                let message = format!("shared_buffer = \"{bytes}B\" holds not even one packet");
                return Err(SpecError::new("shared-buffer-size", "shared_buffer", message)
                    .hint("write for example \"4MB\""));
            }
            _ => {}
        }
        if let Some(control) = self.flow_control() {
            control.check()?;
            if self.shared_buffer != Limit::Unlimited {
                let FlowControlNames { key, shared_memory, .. } = control.said();
                let message =
                    "memory that ports share goes by when packets will leave, which pauses change";
                return Err(SpecError::new(shared_memory, key, message)
                    .hint(format!("leave shared_buffer \"unlimited\", or {key} out")));
            }
        }
        if !(self.alpha > 0.0 && self.alpha <= 1_024.0) {
            let message = format!("alpha = {}: above 0 and at most 1024", self.alpha);
            return Err(SpecError::new("shared-buffer-alpha", "alpha", message)
                .hint("switches offer powers of two from 1/128 to 8"));
        }
        Ok(())
    }

    /// Returns the flow control that pauses links instead of dropping packets, if any.
    pub fn flow_control(&self) -> Option<Arc<dyn FlowControl>> {
        self.pfc.clone().map(|pfc| Arc::new(pfc) as Arc<dyn FlowControl>)
    }

    /// Bytes that can wait at one port while no other takes any, the last packet of `packet` bytes
    /// among them: with w bytes waiting before it, w + packet <= alpha (size - w).
    pub(crate) fn most_of_one_port(&self, packet: u64) -> u64 {
        let Limit::AtMost(Amount::Bytes(size)) = self.shared_buffer else { return u64::MAX };
        let before = (self.alpha * size as f64 - packet as f64) / (1.0 + self.alpha);
        (before.max(0.0) as u64 + packet).min(size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_counted_in_bytes() {
        let shared_buffer = Limit::AtMost(Amount::Packets(100));
        let spec = SwitchSpec { shared_buffer, ..SwitchSpec::default() };
        assert_eq!(spec.check().expect_err("packets").code, "shared-buffer-unit");
    }
}
