//! Which tokens train.
//!
//! A mask is a pure function of spans, that is of the facts that a template stated, and of the weights that messages
//! carry. Nothing here searches text or ids, so no text that a user or a tool supplies can move a mask bit; and another
//! mask costs no second tokenization.

mod policy;

pub use policy::{MaskPolicy, Parts, TrainOn};

use crate::chat::segment::{Facts, Part, Role};

/// The weight that a message carries: its index and the weight, in the order of the messages. One without weighs 1.
pub type MessageWeight = (u32, f32);

/// The structural assistant mask of the reference data: everything after an assistant header, up to and including the
/// end token, whoever supplied it.
#[must_use]
pub fn in_assistant_body(facts: Facts) -> bool {
    facts.role == Role::Assistant && facts.part != Part::Header
}

impl MaskPolicy {
    /// The weight of each stretch of tokens of one conversation, whose facts are given in order: 0 where nothing
    /// trains.
    pub fn weigh<'a>(
        self,
        facts: impl Iterator<Item = Facts> + Clone + 'a,
        weights: &'a [MessageWeight],
    ) -> impl Iterator<Item = f32> + 'a {
        let landmarks = Landmarks::find(facts.clone());
        facts.map(move |facts| {
            if self.selects(facts, &landmarks) {
                self.weight(facts.message_index, weights)
            } else {
                0.0
            }
        })
    }

    fn selects(self, facts: Facts, landmarks: &Landmarks) -> bool {
        let is_after = |landmark: Option<u32>| match (facts.message_index, landmark) {
            (Some(index), Some(landmark)) => index > landmark,
            (Some(_), None) => true,
            (None, _) => false,
        };
        let is_turn = facts.role == Role::Assistant && facts.message_index.is_some();
        let is_one_of = |message: Option<u32>| is_turn && facts.message_index == message;
        let is_selected = match self.train_on {
            TrainOn::AllTokens => return true,
            // Nothing before the message counts as said after it, and without a user nothing does.
            TrainOn::AfterFirstUser => {
                return landmarks.first_user.is_some() && is_after(landmarks.first_user);
            }
            TrainOn::AllAssistantMessages | TrainOn::PerMessage => is_turn,
            TrainOn::LastAssistantMessage => is_one_of(landmarks.last_assistant),
            TrainOn::LastAssistantTurn => is_turn && is_after(landmarks.last_user),
            TrainOn::FinalAnswer => is_one_of(landmarks.final_answer),
        };
        is_selected && self.parts.contain(facts)
    }

    fn weight(self, message_index: Option<u32>, weights: &[MessageWeight]) -> f32 {
        if matches!(self.train_on, TrainOn::AllTokens | TrainOn::AfterFirstUser) {
            return 1.0;
        }
        let given = message_index.and_then(|message| {
            let found = weights.binary_search_by_key(&message, |(index, _)| *index);
            Some(weights[found.ok()?].1)
        });
        match (given, self.train_on) {
            (Some(weight), _) => weight,
            (None, TrainOn::PerMessage) => 0.0,
            (None, _) => 1.0,
        }
    }
}

/// The messages that policies refer to.
#[derive(Default)]
struct Landmarks {
    first_user: Option<u32>,
    last_user: Option<u32>,
    last_assistant: Option<u32>,
    /// The last assistant message without calls.
    final_answer: Option<u32>,
}

impl Landmarks {
    fn find(facts: impl Iterator<Item = Facts>) -> Self {
        let mut landmarks = Self::default();
        for facts in facts {
            match (facts.role, facts.message_index) {
                (Role::User, Some(index)) => {
                    landmarks.first_user.get_or_insert(index);
                    landmarks.last_user = Some(index);
                }
                (Role::Assistant, Some(index)) => {
                    landmarks.last_assistant = Some(index);
                    if !facts.calls {
                        landmarks.final_answer = Some(index);
                    }
                }
                _ => {}
            }
        }
        landmarks
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::templates::Template;

    fn one(role: Role, message_index: u32, part: Part, sampled: bool, prefilled: bool) -> Facts {
        Facts {
            role,
            message_index: Some(message_index),
            part,
            sampled,
            prefilled,
            calls: matches!((role, message_index), (Role::Assistant, 1 | 5)),
        }
    }

    /// user, assistant with a call, tool, assistant with an answer, user, assistant with a call.
    fn facts() -> Vec<Facts> {
        let call = |index| {
            [
                one(Role::Assistant, index, Part::Header, false, false),
                one(Role::Assistant, index, Part::ThinkOpen, false, true),
                one(Role::Assistant, index, Part::Think, true, false),
                one(Role::Assistant, index, Part::ThinkClose, true, false),
                one(Role::Assistant, index, Part::ToolCallMarker, true, false),
                one(Role::Assistant, index, Part::ToolName, true, false),
                one(Role::Assistant, index, Part::ToolArguments, true, false),
                one(Role::Assistant, index, Part::End, true, false),
            ]
        };
        let answer = [
            one(Role::Assistant, 3, Part::Header, false, false),
            one(Role::Assistant, 3, Part::ThinkOpen, false, true),
            one(Role::Assistant, 3, Part::ThinkClose, false, false),
            one(Role::Assistant, 3, Part::Text, true, false),
            one(Role::Assistant, 3, Part::End, true, false),
        ];
        let mut facts = vec![one(Role::User, 0, Part::Text, false, false)];
        facts.extend(call(1));
        facts.push(one(Role::Tool, 2, Part::Text, false, false));
        facts.extend(answer);
        facts.push(one(Role::User, 4, Part::Text, false, false));
        facts.extend(call(5));
        facts
    }

    fn mask(policy: &str, weights: &[MessageWeight]) -> String {
        let template = Template::from_name("kimi-k2.5").unwrap();
        let policy = MaskPolicy::parse(policy, template).unwrap();
        let facts = facts();
        policy
            .weigh(facts.iter().copied(), weights)
            .map(|weight| if weight > 0.0 { '1' } else { '.' })
            .collect()
    }

    #[test]
    fn each_policy_selects_its_messages() {
        //                                  u assist.1 t asst3 u assist.5
        for (policy, expected) in [
            ("all_assistant_messages", "...111111....11...111111"),
            ("last_assistant_message", "..................111111"),
            ("last_assistant_turn", "..................111111"),
            ("final_answer", ".............11........."),
            ("after_first_user", ".11111111111111111111111"),
            ("all_tokens", "111111111111111111111111"),
            ("per_message", "........................"),
        ] {
            assert_eq!(mask(policy, &[]), expected, "{policy}");
        }
    }

    #[test]
    fn parts_are_switched_one_by_one() {
        for (policy, expected) in [
            ("all_assistant_messages-think", ".....1111....11.....1111"),
            (
                "all_assistant_messages+think_prefill",
                "..1111111..1.11..1111111",
            ),
            (
                "all_assistant_messages+empty_think",
                "...111111...111...111111",
            ),
            ("all_assistant_messages-text", "...111111.....1...111111"),
            (
                "all_assistant_messages-tool_call_markers",
                "...11.111....11...11.111",
            ),
            (
                "all_assistant_messages-tool_names",
                "...111.11....11...111.11",
            ),
            (
                "all_assistant_messages-tool_arguments",
                "...1111.1....11...1111.1",
            ),
            ("all_assistant_messages-end", "...11111.....1....11111."),
        ] {
            assert_eq!(mask(policy, &[]), expected, "{policy}");
        }
    }

    #[test]
    fn weights_of_messages_take_effect_where_messages_are_chosen() {
        let weights = [(1, 0.0), (3, 0.5)];
        assert_eq!(
            mask("all_assistant_messages", &weights),
            ".............11...111111"
        );
        assert_eq!(mask("per_message", &weights), ".............11.........");
        assert_eq!(mask("all_tokens", &weights), "1".repeat(24));
    }
}
