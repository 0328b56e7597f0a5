#!/bin/sh
# idiograph-small from triplets, on one GPU:  train.sh WORK GRANITE [STAGE …]
# WORK is that of data.sh; GRANITE is a folder with granite-embedding-30m-english. Stages that are done are passed over, and
# one that was stopped goes on where it was.
set -eu
here=$(dirname "$0") work=$1 granite=$2
shift 2
: "${IDIOGRAPH:=idiograph}" "${MINILM:=minilm}"
m=$work/models
mkdir -p "$m"

triplets=
for name in acl acl-last arxiv elife elife-first langsci langsci-first langsci-last peerread peerread-first peerread-last; do
    triplets="$triplets $work/triplets/$name"
done

# train NAME OPTIONS
train() {
    to=$m/$1
    shift
    [ -f "$to/manifest.json" ] || $IDIOGRAPH train $triplets -o "$to" "$@"
}

# mean NAME OPTIONS
mean() {
    to=$m/$1
    shift
    [ -f "$to/manifest.json" ] || $IDIOGRAPH average -o "$to" "$@"
}

first() { train first --backbone "$granite" --recipe "$here/plain.toml" --steps 1400 --lr 1e-4 --set distort=0.3; }
second() { train second --backbone "$granite" --recipe "$here/plain.toml" --steps 1200 --lr 1.5e-4 --seed 8; }
both() { mean mean "$m/first" "$m/second"; }
third() {
    both
    train third --backbone "$m/mean" --recipe "$here/wording.toml" --steps 350 --lr 1e-4
}
fourth() { mean fourth "$m/third" --half --wording 1.5; }
# another run from the same mean, shorter and gentler: a second opinion for the teacher
variant() {
    both
    train variant --backbone "$m/mean" --recipe "$here/wording.toml" --steps 200 --lr 5e-5 --seed 8
}
minilm() { train minilm-authors --backbone "$MINILM" --recipe "$here/minilm.toml" --steps 400 --lr 1e-4; }
fifth() {
    train fifth --backbone "$m/fourth" --recipe "$here/wording.toml" --steps 640 --lr 1e-4 --set teaching=0.7 \
        --teacher "$m/fourth@ngram:3+0.5*$m/minilm-authors@ngram:3+0.5*$m/variant@ngram:3+0.5*ngrams"
}
small() { mean idiograph-small "$m/fifth" --half; }
# what its scores mean, from people whom nothing was trained on
calibration() {
    c=$work/corpora
    [ -f "$m/idiograph-small/calibration.json" ] || $IDIOGRAPH calibrate "$m/idiograph-small" \
        "$c/elife@last" "$c/langsci@first" "$c/acl-abstracts@first" "$c/arxiv-abstracts" --split valid --pairs 250 \
        --recipe "$here/people.toml"
}
# what the same steps bring without a teacher
control() { train control --backbone "$m/fourth" --recipe "$here/wording.toml" --steps 640 --lr 1e-4; }

for stage in ${*:-first second third fourth variant minilm fifth small calibration}; do $stage; done
