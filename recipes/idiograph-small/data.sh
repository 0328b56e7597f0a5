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

# mine CORPUS NAME RECIPE OPTIONS: whoever is validated or tested on in what was mined before is not in train. People are
# split one by one (`split = "people"` in the recipes), as they were when the shipped model was trained and calibrated.
mine() {
    from=$1 to=$2 recipe=$3
    shift 3
    [ -f "$work/triplets/$to/manifest.json" ] && return
    for held in peerread-dev langsci elife peerread acl arxiv; do
        [ ! -f "$work/triplets/$held/manifest.json" ] || set -- "$@" --apart "$work/triplets/$held"
    done
    $IDIOGRAPH mine "$work/corpora/$from" -o "$work/triplets/$to" --negatives matched \
        --recipe "$(dirname "$0")/$recipe.toml" \
        --runner processes --workers "$WORKERS" "$@"
}

for name in peerread-dev langsci elife peerread-train acl-abstracts arxiv-abstracts; do corpus $name; done
mine peerread-dev peerread-dev test-only --sentences 4 --per-document 10
mine langsci langsci people --sentences 2 --sentences 4 --sentences 8 --per-document 16 --containers any
mine elife elife people --label last --sentences 2 --sentences 4 --sentences 8 --per-document 4
mine peerread-train peerread people --sentences 2 --sentences 4 --sentences 8 --per-document 10
mine acl-abstracts acl people --label first --sentences 2 --sentences 4 --per-document 3
mine arxiv-abstracts arxiv people --sentences 2 --sentences 4 --per-document 1
mine elife elife-first people --label first --sentences 4 --per-document 8
mine langsci langsci-first people --label first --sentences 4 --sentences 8 --per-document 16 --containers any
mine langsci langsci-last people --label last --sentences 4 --sentences 8 --per-document 16 --containers any
mine peerread-train peerread-first people --label first --sentences 4 --sentences 8 --per-document 10
mine peerread-train peerread-last people --label last --sentences 4 --sentences 8 --per-document 10
mine acl-abstracts acl-last people --label last --sentences 2 --sentences 4 --per-document 3
