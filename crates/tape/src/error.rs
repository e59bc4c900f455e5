use crate::NodeId;

/// What a rule or a recipe may fail with: anything that describes itself.
pub type RuleError = Box<dyn std::error::Error + Send + Sync>;

/// The outcome of a rule or a recipe.
pub type RuleResult<T = ()> = std::result::Result<T, RuleError>;

/// Why recording, a pullback or a Hessian-vector product did not happen.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A plain pullback starts from one number; this value has another count of elements.
    #[error("the loss has {elements} elements, not one: reduce it, or give a cotangent to `pullback_seeded`")]
    NonScalarLoss {
        /// The number of elements of the value.
        elements: usize,
    },
    /// The value is on no tape, or the tape has no such node.
    #[error("the value has no node on the tape: it was detached, or never recorded")]
    MissingNode,
    /// The graph that the value belongs to was freed.
    #[error("the graph of this value was freed: record it again")]
    GraphFreed,
    /// The value belongs to another tape.
    #[error("the value belongs to another tape: detach it, or record both on one tape")]
    ForeignNode,
    /// A node on the way has a rule without second order.
    #[error("the rule of {node} has no second order: implement `ReverseRule::second_order`")]
    HvpNotSupported {
        /// The node whose rule it is.
        node: NodeId,
    },
    /// A seed or a direction is no tangent of its value.
    #[error(
        "what was given as the seed or direction of {node} does not fit its value: it must have the same shape"
    )]
    NotATangent {
        /// The node that it was given for.
        node: NodeId,
    },
    /// A tangent does not fit the value that it was given for.
    #[error("the tangent does not fit its value: it must have the same shape")]
    TangentMisfit,
    /// A node on the way has a rule that cannot be recorded.
    #[error(
        "the pullback of {node} cannot be recorded: implement `pullback_on_tape`, or use `pullback` for a gradient that \
         has no gradient in turn"
    )]
    HigherOrderNotSupported {
        /// The node whose rule it is.
        node: NodeId,
    },
    /// An operation on values with tangents has no pushforward.
    #[error("the operation has no tangent: implement `Operation::second_order` and `Operation::pushforward`")]
    JvpNotSupported,
    /// The value is of another graph than the gradients that were asked about it.
    #[error(
        "the value is of another graph than these gradients: of another tape, or recorded before or after `free`"
    )]
    OtherGraph,
    /// Only leaves have a direction and a gradient of their own.
    #[error(
        "{node} is not a leaf: directions and gradients are those of leaves; for an intermediate value, add a leaf that is \
         zero to it"
    )]
    NotALeaf {
        /// The node that was given a direction, or asked for its gradient.
        node: NodeId,
    },
    /// A rule can be attached to a placeholder once, and to nothing else.
    #[error("no rule can be attached to {node}, which is {found}: only to a placeholder without a rule")]
    NotAPlaceholder {
        /// The node.
        node: NodeId,
        /// What it is instead.
        found: &'static str,
    },
    /// A cotangent reached a placeholder that never got its rule.
    #[error("placeholder {node} has no rule: attach one before the pullback")]
    Unattached {
        /// The placeholder.
        node: NodeId,
    },
    /// An input of a placeholder's rule was recorded after the placeholder.
    #[error("{input} was recorded after the placeholder {node} and cannot be its input")]
    InputAfterNode {
        /// The placeholder.
        node: NodeId,
        /// The input that is too young.
        input: NodeId,
    },
    /// The tape does not keep the value of this node.
    #[error("the tape keeps no value of {node}: it is checkpointed, keep its handle instead")]
    NotRetained {
        /// The checkpointed node.
        node: NodeId,
    },
    /// An auxiliary output has no derivative.
    #[error("{node} is an auxiliary output and has no derivative")]
    Auxiliary {
        /// The auxiliary output.
        node: NodeId,
    },
    /// The number of things given is not the number expected.
    #[error("{what}: expected {expected}, found {found}")]
    Arity {
        /// What was counted.
        what: &'static str,
        /// How many there should be.
        expected: usize,
        /// How many there were.
        found: usize,
    },
    /// In checked mode: a replay gave another value than the one recorded.
    #[error("the replay of {node} did not reproduce the recorded value: its recipe is not a pure function")]
    ReplayMismatch {
        /// The node that was replayed.
        node: NodeId,
    },
    /// In checked mode: the value type cannot be compared with its replay.
    #[error("checked mode needs `Differentiable::fingerprint`, which this value type does not give")]
    NoFingerprint,
    /// The limit leaves no room for a single forward run.
    #[error("a limit of {budget} is below the minimum of {minimum} that this graph needs")]
    BudgetTooSmall {
        /// The limit that was set.
        budget: u64,
        /// The least that works.
        minimum: u64,
    },
    /// The tape holds as many nodes as it can number.
    #[error("the tape is full (2^31 nodes): free it, or checkpoint larger operations")]
    TapeFull,
    /// A rule or a recipe failed.
    #[error("the rule or recipe of {node} failed: {message}")]
    Rule {
        /// The node whose rule or recipe it is.
        node: NodeId,
        /// What it said.
        message: Box<str>,
    },
    /// The forward function of an operation failed.
    #[error("the forward function of an operation failed: {0}")]
    Forward(Box<str>),
}

/// The result of this crate's functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;
