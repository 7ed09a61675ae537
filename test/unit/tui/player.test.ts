import { expect } from "chai";
import type { RunEvent } from "#engine/events/event.ts";
import type { RunModel } from "#engine/events/run-model.ts";
import { reduceEvents } from "#engine/events/reduce.ts";
import { Player } from "#tui/player.ts";
import { recordedRun } from "#support/recorded-runs.ts";
import { FakeTimers } from "#support/fake-timers.ts";

const events = recordedRun("failed");
const start = events[0]?.at ?? 0;

function play(speed: number, recording: readonly RunEvent[] = events) {
  const clock = new FakeTimers();
  const drawn: number[] = [];
  const models: RunModel[] = [];
  const player = new Player({ events: recording, speed, clock });
  player.start({ draw: ({ seq }) => drawn.push(seq), replace: (model) => models.push(model) });
  return { clock, drawn, models, player };
}

describe("the player of recorded runs", () => {
  it("draws each event at its time", () => {
    const { clock, drawn } = play(1);
    expect(drawn).to.deep.equal([1]);
    clock.pass(500);
    expect(drawn).to.deep.equal(events.filter(({ at }) => at - start <= 500).map(({ seq }) => seq));
    clock.pass(10_000);
    expect(drawn).to.deep.equal(events.map(({ seq }) => seq));
  });

  it("draws events faster by its speed, and all at once at infinite speed", () => {
    const { clock, drawn } = play(4);
    clock.pass(250);
    expect(drawn).to.deep.equal(events.filter(({ at }) => at - start <= 1000).map(({ seq }) => seq));
    expect(play(Infinity).drawn).to.have.length(events.length);
  });

  it("is paused at the end, without a timer", () => {
    const { clock, player } = play(1);
    clock.pass(60_000);
    expect(player.state()).to.include({ ended: true, playing: false, at: start + 2300, from: start, to: start + 2300 });
    expect(clock.waiting).to.equal(0);
  });

  it("stops while paused and continues at the same moment", () => {
    const { clock, drawn, player } = play(1);
    clock.pass(400);
    player.toggle();
    const before = drawn.length;
    clock.pass(60_000);
    expect(drawn).to.have.length(before);
    expect(player.state()).to.include({ playing: false, at: start + 400 });
    player.toggle();
    clock.pass(100);
    expect(player.state().at).to.equal(start + 500);
    expect(drawn.length).to.be.greaterThan(before);
  });

  it("moves to the end of the next or former step", () => {
    const { drawn, models, player } = play(1);
    const ends = events.filter(({ type }) => type === "step.finished").map(({ seq }) => seq);
    player.step(1);
    expect(drawn.at(-1)).to.equal(ends[0]);
    player.step(1);
    expect(drawn.at(-1)).to.equal(ends[1]);
    expect(player.state()).to.include({ playing: false, at: events.find(({ seq }) => seq === ends[1])?.at });
    player.step(-1);
    expect(models).to.deep.equal([reduceEvents(events.slice(0, ends[0]))]);
    player.step(-1);
    expect(models.at(-1)?.lastSeq).to.equal(1);
    for (let count = 0; count < 9; count++) player.step(1);
    expect(player.state()).to.include({ ended: true, at: start + 2300 });
  });

  it("seeks to any moment with the run's state at that moment", () => {
    const { clock, drawn, models, player } = play(1);
    for (const target of [1700, 300, 2300, 0]) {
      player.seek(target - (player.state().at - start));
      expect(models.at(-1)).to.deep.equal(reduceEvents(events.filter(({ at }) => at - start <= target)));
      expect(player.state().at).to.equal(start + target);
    }
    player.seek(1700);
    player.play();
    const before = drawn.length;
    clock.pass(100);
    expect(drawn.slice(before)).to.deep.equal(events.filter(({ at }) => at - start === 1800).map(({ seq }) => seq));
    player.seek(-1e9);
    expect(player.state().at).to.equal(start);
    player.seek(1e9);
    expect(player.state()).to.include({ ended: true });
  });

  it("plays from the start again after the end", () => {
    const { clock, drawn, player } = play(1);
    clock.pass(60_000);
    player.play();
    expect(player.state()).to.include({ playing: true, at: start });
    clock.pass(100);
    expect(drawn.at(-1)).to.equal(2);
  });

  it("changes its speed while it plays", () => {
    const { clock, player } = play(1);
    clock.pass(200);
    player.setSpeed(2);
    expect(player.state()).to.include({ speed: 2, at: start + 200 });
    clock.pass(100);
    expect(player.state().at).to.equal(start + 400);
  });

  it("notifies subscribers of every change of its state", () => {
    const { player } = play(1);
    let changes = 0;
    const leave = player.subscribe(() => (changes += 1));
    player.pause();
    player.play();
    player.step(1);
    expect(changes).to.equal(3);
    leave();
    player.play();
    expect(changes).to.equal(3);
  });

  it("does not run backwards if the bastion's clock was set back, and accepts an empty record", () => {
    const odd = events.slice(0, 3).map((event, index) => ({ ...event, at: start - index * 1000 }));
    const { drawn, player } = play(1, odd);
    expect(drawn).to.deep.equal([1, 2, 3]);
    expect(player.state().to).to.equal(start);
    expect(play(1, []).player.state()).to.include({ ended: true, to: 0 });
  });
});
