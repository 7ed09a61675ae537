import { expect } from "chai";
import type { RunEvent } from "#engine/events/event.ts";
import { pressKey } from "#tui/ink/run-keys.ts";
import { freshUi, type RunEffect, type RunUi } from "#tui/ink/run-ui.ts";
import { recordedRun } from "#support/recorded-runs.ts";
import { linesOf, sceneOf, typeKeys, type SceneOptions } from "#support/scenes.ts";

const failed = recordedRun("failed");
const done = recordedRun("done");
const asking = (kind: "confirm" | "password", secret = false): readonly RunEvent[] => [
  ...done.slice(0, 15),
  { seq: 16, at: 1, type: "question.asked", question: { id: "q1", kind, text: "Go on?", node: "n2", secret } },
];

/** The effect of the last key. */
function effect(
  events: readonly RunEvent[],
  keys: readonly string[],
  options: SceneOptions = {},
): RunEffect | undefined {
  const ui = typeKeys(events, keys.slice(0, -1), options);
  const name = keys.at(-1) ?? "";
  const text = name.length === 1 ? name : "";
  return pressKey(sceneOf(events, { ...options, ui }), { name, text }).effect;
}

const shown = (events: readonly RunEvent[], keys: readonly string[]) =>
  linesOf(sceneOf(events, { ui: typeKeys(events, keys) })).join("\n");

describe("the keys of the live view", () => {
  it("select the first failure until a key moves the selection", () => {
    const scene = sceneOf(failed);
    expect([scene.row?.name, scene.item?.title]).to.deep.equal(["n1", "install tool"]);
    expect(sceneOf(failed, { ui: typeKeys(failed, ["j"]) }).row?.name).to.equal("n2");
    expect(sceneOf(failed, { ui: typeKeys(failed, ["G", "up"]) }).row?.name).to.equal("n1");
    expect(sceneOf(failed, { ui: typeKeys(failed, ["G", "g"]) }).row?.name).to.equal("n1");
  });

  it("open a node, move through its steps, and return", () => {
    expect(shown(failed, ["enter"])).to.contain("── ✗ n1 failed");
    expect(sceneOf(failed, { ui: typeKeys(failed, ["enter", "k"]) }).item?.title).to.equal("operating system");
    expect(sceneOf(failed, { ui: typeKeys(failed, ["enter", "G"]) }).item?.title).to.equal("after it");
    expect(sceneOf(failed, { ui: typeKeys(failed, ["enter", "n"]) }).row?.name).to.equal("n2");
    expect(shown(failed, ["enter", "j", "escape"])).to.contain("── 2 nodes");
  });

  it("filter failed, changed or running nodes, and those with a text", () => {
    const names = (keys: readonly string[], events = done) =>
      sceneOf(events, { ui: typeKeys(events, keys) }).rows.map(({ name }) => name);
    expect([names(["m"]), names(["m", "m"]), names(["f"])]).to.deep.equal([["n1"], ["n1", "n2"], []]);
    expect([names(["f"], failed), names(["r"], done.slice(0, 15))]).to.deep.equal([["n1", "n2"], ["n1"]]);
    expect([names(["/", "2"]), names(["/", "2", "enter", "a"])]).to.deep.equal([["n2"], ["n1", "n2"]]);
    expect(names(["/", "2", "escape"])).to.deep.equal(["n1", "n2"]);
    expect(names(["/", "I", "N", "S", "T", "A", "L"], failed)).to.deep.equal(["n1"]);
    expect(shown(done, ["/", "z"])).to.contain("no node matches");
  });

  it("type into the search field", () => {
    expect(typeKeys(done, ["/", "q", "f", "c", "backspace"])).to.include({ searching: true, search: "qf" });
    expect(shown(done, ["/", "q", "f"])).to.contain(" /qf█");
  });

  it("copy the command that repeats the step on the node", () =>
    expect(effect(failed, ["c"])).to.deep.equal({ type: "copy", text: "kcore orchestrate deploy_node --on n1" }));

  it("leave by q without a stop of the run", () => {
    expect(effect(failed, ["q"])).to.deep.equal({ type: "leave", why: "detached" });
    expect(effect(failed, ["enter", "q"])).to.deep.equal({ type: "leave", why: "detached" });
  });

  it("offer to wait, to abort and to detach after a Ctrl-C", () => {
    expect(effect(done, ["ctrl+c"])).to.deep.equal({ type: "interrupt" });
    const ui: RunUi = { ...freshUi, stopping: true };
    const running = done.slice(0, 15);
    expect(linesOf(sceneOf(running, { ui })).join("\n")).to.match(
      /stopping[^]*Running: n1 data disk[^]*w wait for them {3}a abort them {3}d detach/,
    );
    expect(effect(running, ["a"], { ui })).to.deep.equal({ type: "abort" });
    expect(effect(running, ["d"], { ui })).to.deep.equal({ type: "leave", why: "detached" });
    expect(typeKeys(running, ["w"], { ui }).stopping).to.equal(false);
    expect(typeKeys(running, ["escape"], { ui }).stopping).to.equal(false);
  });

  it("show to all viewers who stopped the run", () => {
    const running = done.slice(0, 15);
    const stop = { seq: 100, at: 9_000, type: "run.stopping", how: "stop", by: "alice@bastion" } as const;
    expect(linesOf(sceneOf([...running, stop]))[0]).to.contain("stopping by alice@bastion");
  });

  it("answer a confirmation by y or n only", () => {
    const events = asking("confirm");
    expect(shown(events, [])).to.match(/waiting for you: confirm ─[^]*n2: Go on\?[^]*y yes {3}n no/);
    for (const key of ["j", "enter", "x"]) expect(effect(events, [key])).to.include({ type: "say" });
    expect(effect(events, ["x", "y"])).to.deep.equal({ type: "answer", id: "q1", value: "yes" });
    expect(effect(events, ["n"])).to.deep.equal({ type: "answer", id: "q1", value: "no" });
    expect(shown(events, ["n"])).to.not.contain("y yes");
  });

  it("type a secret without showing its text or length", () => {
    const events = asking("password", true);
    const text = shown(events, ["s", "3", "c", "r", "3", "t"]);
    expect(text).to.not.contain("s3cr3t");
    expect(text).to.equal(shown(events, ["x"]));
    expect(effect(events, ["s", "3", "enter"])).to.deep.equal({ type: "answer", id: "q1", value: "s3" });
  });

  it("put a question aside and return to it by Tab", () => {
    const events = asking("confirm");
    expect(shown(events, ["tab"])).to.contain("? 1 open, Tab answers");
    expect(sceneOf(events, { ui: typeKeys(events, ["tab", "G"]) }).row?.name).to.equal("n2");
    expect(shown(events, ["tab", "tab"])).to.contain("Go on?");
  });

  it("close a question that another view answered", () => {
    const events: readonly RunEvent[] = [
      ...asking("confirm"),
      { seq: 17, at: 2, type: "question.answered", id: "q1", by: "somebody else" },
    ];
    expect(shown(events, [])).to.not.contain("Go on?");
    expect(effect(events, ["q"])).to.deep.equal({ type: "leave", why: "detached" });
  });

  it("show help, stages and warnings over the nodes", () => {
    expect(shown(done, ["?"])).to.match(/── keys[^]*to another node[^]*leave; the run goes on/);
    expect(shown(done, ["s"])).to.match(/── stages ─[^]*✓ preflight/);
    expect(shown(done, ["w"])).to.contain("no warnings");
    expect(shown(done, ["?", "escape"])).to.contain("── 2 nodes");
  });

  it("control the player in a replay, and send nothing", () => {
    const player = {
      playing: true,
      speed: 1,
      at: done[10]?.at ?? 0,
      from: done[0]?.at ?? 0,
      to: done.at(-1)?.at ?? 0,
      ended: false,
    };
    const replay = { player };
    expect(effect(done, ["space"], replay)).to.deep.equal({ type: "toggle" });
    expect(effect(done, ["right"], replay)).to.deep.equal({ type: "seek", by: 5000 });
    expect(effect(done, ["."], replay)).to.deep.equal({ type: "step", direction: 1 });
    expect(effect(done, ["+"], replay)).to.deep.equal({ type: "speed", factor: 2 });
    expect(effect(done, ["ctrl+c"], replay)).to.deep.equal({ type: "leave", why: "detached" });
    expect(sceneOf(asking("confirm"), replay).question).to.equal(undefined);
    expect(linesOf(sceneOf(done, replay)).join("\n")).to.match(/▶ 1x {2}━+─+ {2}1\.0s \/ 3\.4s/);
    const fastest = { player: { ...player, speed: 1e6 } };
    expect(linesOf(sceneOf(done, fastest)).join("\n"))
      .to.contain(" max ")
      .and.not.contain("1000000");
  });

  it("follow a running step's output until it is scrolled", () => {
    expect(typeKeys(failed, ["enter", "pageup"]).follow).to.equal(false);
    expect(typeKeys(failed, ["enter", "pageup", "o"]).follow).to.equal(true);
    expect(typeKeys(failed, ["o"])).to.include({ pane: "node", follow: true });
  });

  it("show no overlay of stages if all stages are visible beside the nodes", () => {
    const wide = { columns: 200, rows: 60 };
    expect([typeKeys(done, ["s"]).overlay, typeKeys(done, ["s"], wide).overlay]).to.deep.equal(["stages", undefined]);
    expect(effect(done, ["s"], wide)).to.include({ type: "say" });

    const begun = done[0];
    if (begun?.type !== "run.started") expect.fail();
    const stages = Array.from({ length: 70 }, (_, index) => ({ id: `s${index}`, title: "s", nodes: ["n1"] }));
    expect(typeKeys([{ ...begun, stages }, ...done.slice(1)], ["s"], wide).overlay).to.equal("stages");
  });

  it("sort the nodes by the columns that the record has, show the column, and keep the selection", () => {
    const begun = done[0];
    if (begun?.type !== "run.started") expect.fail();
    const known = [{ ...begun, roles: { worker: [0], controller: [1] }, dcs: { fra1: [0, 1] } }, ...done.slice(1)];
    const after = (events: readonly RunEvent[], ...keys: readonly string[]) =>
      sceneOf(events, { ui: typeKeys(events, keys) });
    const names = (...keys: readonly string[]) => after(known, ...keys).rows.map(({ name }) => name);
    expect(names("S")).to.deep.equal(["n1", "n2"]);
    expect(names("S", "S")).to.deep.equal(["n2", "n1"]);
    const byRole = linesOf(after(known, "S", "S")).join("\n");
    expect(byRole)
      .to.match(/── by role ─/)
      .and.to.match(/ NODE +ROLE +STEP/)
      .and.to.match(/ n2 +controller /);
    expect(after(known, "S", "S").row?.name).to.equal("n1");
    expect(linesOf(after(known, "S", "S", "S")).join("\n")).to.match(/ n1 +fra1 /);
    expect(after(known, "S", "S", "S", "S").ui.sort).to.equal("time");
    expect(after(known, "S", "S", "S", "S", "S").ui.sort).to.equal("state");
    expect(after(known, "S", "a").ui.sort).to.equal("state");
    // A record of an earlier version has neither roles nor datacenters.
    expect(after(done, "S", "S").ui.sort).to.equal("time");
    expect(effect(known, ["S"])).to.deep.equal({ type: "say", text: "sorted by name" });
    expect(names("/", "r", "o", "l", "e", ":", "w", "enter")).to.deep.equal(["n1"]);
  });

  describe("in a step's output", () => {
    const at = failed.findIndex((event) => event.type === "step.started" && event.step === "disks/install");
    const printed = Array.from({ length: 36 }, (_, index) => ({
      type: "step.output",
      node: "n1",
      step: "disks/install",
      stream: index === 17 ? "err" : "out",
      text: `line ${index + 1} ${index % 12 === 5 ? "needle" : "hay"} ${"x".repeat(90)}\n`,
    }));
    const events = [...failed.slice(0, at + 1), ...printed, ...failed.slice(at + 1)].map(
      (event, index) => ({ at: 1, ...event, seq: index + 1 }) as RunEvent,
    );
    const after = (...keys: readonly string[]) => {
      const pressed = keys.flatMap((key) => (/^\/./.test(key) ? ["/", ...Array.from(key.slice(1)), "enter"] : [key]));
      return linesOf(sceneOf(events, { ui: typeKeys(events, pressed) }));
    };
    const pointed = (lines: readonly string[]) =>
      lines.filter((line) => line.startsWith(" ▸ ")).map((line) => /line \d+/.exec(line)?.[0]);

    it("show it on the whole terminal by Enter, and beside the steps again", () => {
      const lines = after("enter", "enter");
      expect(lines[0]).to.match(/^── n1 ▸ install tool ─+ 1–\d+ of \d+ ─$/);
      expect(lines).to.have.length(24);
      expect(lines.join("\n")).to.not.contain("deploy_node");
      expect(after("enter", "enter", "enter")).to.deep.equal(after("enter"));
      expect(after("enter", "enter", "escape")).to.deep.equal(after("enter"));
      expect(after("enter", "enter", "escape", "escape").join("\n")).to.contain("── 2 nodes");
    });

    it("search to the first match, by n and N to the others cyclically, until Esc", () => {
      const first = after("enter", "enter", "/needle");
      expect(first[0]).to.contain("“needle” 1/3");
      expect(pointed(first)).to.deep.equal(["line 6"]);
      const third = after("enter", "enter", "/needle", "n", "n");
      expect(third[0]).to.contain("“needle” 3/3");
      expect(pointed(third)).to.deep.equal(["line 30"]);
      expect(after("enter", "enter", "/needle", "n", "n", "n")[0]).to.contain("1/3");
      expect(after("enter", "enter", "/needle", "N")[0]).to.contain("3/3");
      expect(effect(events, ["enter", "/", "h", "enter", "N"])).to.include({ type: "say" });
      expect(after("enter", "enter", "/needle", "escape")[0]).to.not.contain("needle");
      // Also beside the steps, where n without a search is the next node.
      expect(after("enter", "/needle", "n").join("\n")).to.contain("“needle” 2/3");
    });

    it("show that a search found nothing, and keep the position", () => {
      const lines = after("enter", "enter", "pagedown", "/nowhere");
      expect(lines[0]).to.contain("“nowhere” not found");
      expect(lines.slice(1, -1)).to.deep.equal(after("enter", "enter", "pagedown").slice(1, -1));
      expect(effect(events, ["enter", "/", "?", "?", "enter", "n"])).to.include({ type: "say" });
    });

    it("cancel a typed search by Esc, and keep the former search", () => {
      expect(after("enter", "/needle", "/", "h", "escape").join("\n")).to.contain("“needle” 1/3");
      expect(after("enter", "/", "h", "escape").join("\n")).to.not.contain("“");
    });

    it("truncate and wrap long lines by w", () => {
      const rows = (lines: readonly string[]) => Number(/ of (\d+) ─$/.exec(lines[0] ?? "")?.[1]);
      const [wrapped, cut] = [after("enter", "enter"), after("enter", "enter", "w")];
      expect(rows(wrapped) - rows(cut)).to.equal(36);
      expect(cut.join("\n")).to.match(/line 2 hay x+…/);
      expect(after("enter", "enter", "w", "w")).to.deep.equal(wrapped);
      expect(after("enter", "enter", "/needle", "w", "n")[0]).to.match(/needle” [123]\/3/);
      // The first visible line stays about the same.
      const first = (lines: readonly string[]) => Number(/│ line (\d+)/.exec(lines.join("\n"))?.[1]);
      const before = first(after("enter", "enter", "/line 20", "escape"));
      expect(first(after("enter", "enter", "/line 20", "escape", "w"))).to.be.within(before - 4, before + 4);
    });

    it("scroll by lines and to both ends, with stderr marked", () => {
      const end = after("enter", "enter", "G");
      expect(end[0]).to.match(/(\d+) of \1 ─$/);
      expect(end.join("\n")).to.contain("line 36");
      expect(after("enter", "enter", "G", "g")).to.deep.equal(after("enter", "enter"));
      expect(after("enter", "enter", "j", "j", "k")).to.deep.equal(after("enter", "enter", "j"));
      expect(after("enter", "enter", "w", "/line 18 ").join("\n")).to.match(/\n ▸ ! line 18 needle/);
      expect(after("enter", "enter", "w", "/line 29 ").join("\n")).to.match(/\n ▸ │ line 29 hay/);
    });
  });
});
