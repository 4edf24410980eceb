//! How fast are pieces merged into ids: those of ordinary text, and single ones that are very long?
//!
//! Nothing is timed before its ids are those of the textbook algorithm.

mod corpora;

use std::collections::HashSet;
use std::hint::black_box;

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use fasttok::TokenId;
use fasttok::tokenizer::bpe::Merger;
use fasttok::tokenizer::pretokenizer::pretokenize;
use fasttok::tokenizer::vocab::Vocab;

/// Ranked merges as they are defined: again and again, the leftmost pair of the lowest rank.
fn textbook(vocab: &Vocab, piece: &[u8]) -> Vec<TokenId> {
    let mut parts: Vec<&[u8]> = piece.chunks(1).collect();
    let mut starts: Vec<usize> = (0..piece.len()).collect();
    loop {
        let joined = |i: usize| &piece[starts[i]..starts[i] + parts[i].len() + parts[i + 1].len()];
        let ranked = (0..parts.len().saturating_sub(1))
            .filter_map(|i| Some((vocab.get(joined(i))?, i)))
            .min();
        let Some((_, i)) = ranked else { break };
        parts[i] = joined(i);
        parts.remove(i + 1);
        starts.remove(i + 1);
    }
    let id = |part: &&[u8]| vocab.get(part).expect("each part is a token");
    parts.iter().map(id).collect()
}

/// The different pieces of a text that are no token, so that each needs a merge.
fn pieces_to_merge<'t>(vocab: &Vocab, text: &'t str) -> Vec<&'t str> {
    let mut seen = HashSet::new();
    pretokenize(text)
        .filter(|piece| vocab.get(piece.as_bytes()).is_none() && seen.insert(*piece))
        .collect()
}

/// The contents of the example conversations.
fn contents() -> String {
    let mut text = String::new();
    for line in corpora::trajectories() {
        text.push_str(&String::from_utf8_lossy(&line).replace("\\n", "\n"));
    }
    text
}

fn bench_pieces(criterion: &mut Criterion) {
    let vocab = Vocab::embedded();
    let text = contents();
    let pieces = pieces_to_merge(&vocab, &text);
    let mut merger = Merger::default();
    for piece in &pieces {
        let mut ids = Vec::new();
        merger.merge_into(&vocab, piece.as_bytes(), &mut ids);
        assert_eq!(ids, textbook(&vocab, piece.as_bytes()), "{piece:?}");
    }

    let mut group = criterion.benchmark_group("bpe");
    group.throughput(Throughput::Bytes(
        pieces.iter().map(|piece| piece.len() as u64).sum(),
    ));
    group.bench_function("trajectories", |bencher| {
        bencher.iter_batched_ref(
            Vec::new,
            |ids| {
                for piece in &pieces {
                    merger.merge_into(&vocab, black_box(piece.as_bytes()), ids);
                }
            },
            BatchSize::SmallInput,
        );
    });
    group.finish();
}

/// One piece of `len` bytes, of each kind that real files hold.
fn long_pieces(len: usize) -> [(&'static str, Vec<u8>); 3] {
    let letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let base64 = (0..len).map(|_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        letters[(state >> 32) as usize % letters.len()]
    });
    [
        ("one_letter", vec![b'a'; len]),
        ("blanks", vec![b' '; len]),
        ("base64", base64.collect()),
    ]
}

fn bench_long_pieces(criterion: &mut Criterion) {
    let vocab = Vocab::embedded();
    let mut merger = Merger::default();
    for (name, piece) in long_pieces(3000) {
        let mut ids = Vec::new();
        merger.merge_into(&vocab, &piece, &mut ids);
        assert_eq!(ids, textbook(&vocab, &piece), "{name}");
    }

    let mut group = criterion.benchmark_group("bpe_long");
    group.sample_size(10);
    for len in [1 << 14, 1 << 17, 1 << 20] {
        for (name, piece) in long_pieces(len) {
            group.throughput(Throughput::Bytes(len as u64));
            group.bench_function(BenchmarkId::new(name, len), |bencher| {
                bencher.iter_batched_ref(
                    Vec::new,
                    |ids| merger.merge_into(&vocab, black_box(&piece), ids),
                    BatchSize::LargeInput,
                );
            });
        }
    }
    group.finish();
}

criterion_group!(benches, bench_pieces, bench_long_pieces);
criterion_main!(benches);
