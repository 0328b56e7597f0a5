#!/bin/sh
# Corpora and triplets for idiograph-small:  data.sh CORPORA WORK
# CORPORA has acl-abstracts, arxiv-abstracts, elife, langsci, peerread-train and peerread-dev (.jsonl.zst).
# What is there already is not made again.
set -eu
corpora=$1 work=$2
: "${IDIOGRAPH:=idiograph}" "${WORKERS:=2}"
mkdir -p "$work/corpora" "$work/triplets"

corpus() {
    [ -f "$work/corpora/$1/manifest.json" ] ||
        $IDIOGRAPH corpus "$corpora/$1.jsonl.zst" -o "$work/corpora/$1" --runner processes --workers "$WORKERS"
}

# mine CORPUS NAME OPTIONS: whoever is validated or tested on in what was mined before is not in train
mine() {
    from=$1 to=$2
    shift 2
    [ -f "$work/triplets/$to/manifest.json" ] && return
    for held in peerread-dev langsci elife peerread acl arxiv; do
        [ ! -f "$work/triplets/$held/manifest.json" ] || set -- "$@" --apart "$work/triplets/$held"
    done
    $IDIOGRAPH mine "$work/corpora/$from" -o "$work/triplets/$to" --negatives matched \
        --runner processes --workers "$WORKERS" "$@"
}

for name in peerread-dev langsci elife peerread-train acl-abstracts arxiv-abstracts; do corpus $name; done
mine peerread-dev peerread-dev --recipe "$(dirname "$0")/test-only.toml" --sentences 4 --per-document 10
mine langsci langsci --sentences 2 --sentences 4 --sentences 8 --per-document 16 --containers any
mine elife elife --label last --sentences 2 --sentences 4 --sentences 8 --per-document 4
mine peerread-train peerread --sentences 2 --sentences 4 --sentences 8 --per-document 10
mine acl-abstracts acl --label first --sentences 2 --sentences 4 --per-document 3
mine arxiv-abstracts arxiv --sentences 2 --sentences 4 --per-document 1
mine elife elife-first --label first --sentences 4 --per-document 8
mine langsci langsci-first --label first --sentences 4 --sentences 8 --per-document 16 --containers any
mine langsci langsci-last --label last --sentences 4 --sentences 8 --per-document 16 --containers any
mine peerread-train peerread-first --label first --sentences 4 --sentences 8 --per-document 10
mine peerread-train peerread-last --label last --sentences 4 --sentences 8 --per-document 10
mine acl-abstracts acl-last --label last --sentences 2 --sentences 4 --per-document 3
