import { expect } from "chai";
import type { RunEvent, RunEventBody } from "#engine/events/event.ts";
import { reduceEvents } from "#engine/events/reduce.ts";
import { nodeRows, type NodeRow, waitsFor } from "#tui/node-row.ts";
import { orderRows, type OrderOptions } from "#tui/row-order.ts";
import { recordedRun } from "#support/recorded-runs.ts";
import { runStarted } from "#support/run-started.ts";

const rowsOf = (events: readonly RunEvent[]) => new Map(nodeRows(reduceEvents(events)).map((row) => [row.name, row]));

describe("the rows of a run", () => {
  it("have state, step, progress and counts of each node", () => {
    const rows = rowsOf(recordedRun("failed"));
    expect(rows.get("n1")).to.include({ state: "failed", rank: 0, failed: 1, ended: 3, planned: 3 });
    expect(rows.get("n1")?.item?.title).to.equal("install tool");
    expect(rows.get("n2")).to.include({ state: "unreachable", rank: 0, ended: 0, progress: 0 });
    expect(rows.get("n2")?.problem?.code).to.equal("HOST_UNREACHABLE");
    expect(rowsOf(recordedRun("done")).get("n1")).to.include({ state: "done", changed: 3, failed: 0, progress: 1 });
  });

  it("count what would change in a dry run", () =>
    expect(rowsOf(recordedRun("dry-run")).get("n1")?.changed).to.equal(1));

  it("include the bastion if it acts for no single node", () => {
    const rows = nodeRows(reduceEvents(recordedRun("deploy-three")));
    expect(rows.map(({ name, isBastion }) => [name, isBastion])).to.deep.equal([
      ["bastion", true],
      ["n1", false],
      ["n2", false],
      ["n3", false],
    ]);
    expect(rows.find(({ name }) => name === "n1")?.items.map(({ module }) => module)).to.include("pki.issueNode");
  });

  it("show a node's open question", () => {
    const events = recordedRun("done").slice(0, 15);
    const question = { id: "q", kind: "password", text: "sudo password", node: "n2", secret: true } as const;
    const asked = rowsOf([...events, { seq: 16, at: 1, type: "question.asked", question }]);
    expect(asked.get("n2")).to.include({ state: "asking", rank: 1, reason: "asks: sudo password" });
    expect(asked.get("n1")).to.include({ state: "running" });
  });

  it("are the same objects for unchanged nodes", () => {
    const events = recordedRun("done");
    const before = reduceEvents(events.slice(0, 16));
    const after = reduceEvents(events.slice(16, 19), before);
    const [was, is] = [nodeRows(before), nodeRows(after)];
    expect(is.find(({ name }) => name === "n2")).to.equal(was.find(({ name }) => name === "n2"));
    expect(is.find(({ name }) => name === "n1")).to.not.equal(was.find(({ name }) => name === "n1"));
    expect(nodeRows(after)).to.equal(is);
  });
});

describe("the order of rows", () => {
  const row = (name: string, rank: NodeRow["rank"], more: Partial<NodeRow> = {}): NodeRow => ({
    name,
    rank,
    isBastion: false,
    roles: [],
    dc: "",
    state: (["failed", "running", "pending", "done"] as const)[rank],
    items: [],
    ended: 0,
    planned: 0,
    isOpen: false,
    changed: 0,
    unknown: 0,
    isForeseen: false,
    failed: 0,
    progress: 0,
    time: () => undefined,
    ...more,
  });
  const rows = [row("a", 3), row("b", 1), row("c", 0), row("d", 2), row("e", 1, { changed: 2 })];
  const order = (options: Partial<OrderOptions>) =>
    orderRows(rows, { filter: "all", search: "", sort: "state", now: 0, height: 10, ...options })
      .map(({ name }) => name)
      .join("");

  it("has failures first, and keeps the others while all fit", () => expect(order({})).to.equal("cabde"));

  it("has running nodes before waiting and ended ones if not all fit", () =>
    expect(order({ height: 3 })).to.equal("cbeda"));

  it("keeps the selected row in place, unless it fails", () => {
    expect(order({ height: 3, held: { name: "a", rank: 1 } })).to.equal("cabed");
    expect(order({ height: 3, held: { name: "c", rank: 1 } })).to.equal("cbeda");
  });

  it("filters by state, changes and text", () => {
    expect([order({ filter: "failed" }), order({ filter: "running" })]).to.deep.equal(["c", "be"]);
    expect([order({ filter: "changed" }), order({ search: "PEND" })]).to.deep.equal(["e", "d"]);
  });

  describe("of nodes with roles and datacenters", () => {
    const fleet = [
      row("n10", 3, { roles: ["worker"], dc: "fra1", time: () => 9 }),
      row("n9", 1, { roles: ["worker", "edge"], dc: "ams2", time: () => 30, reason: "worker is slow" }),
      row("n2", 0, { roles: ["worker"], dc: "fra1" }),
      row("n1", 2, { roles: ["controller"], dc: "fra10", time: () => 20 }),
    ];
    const names = (options: Partial<OrderOptions>) =>
      orderRows(fleet, { filter: "all", search: "", sort: "name", now: 0, height: 10, ...options }).map(
        ({ name }) => name,
      );

    it("sorts by name, role, datacenter and time, with natural numbers and failures first", () => {
      expect(names({})).to.deep.equal(["n2", "n1", "n9", "n10"]);
      expect(names({ sort: "role" })).to.deep.equal(["n2", "n1", "n10", "n9"]);
      expect(names({ sort: "dc" })).to.deep.equal(["n2", "n9", "n10", "n1"]);
      expect(names({ sort: "time" })).to.deep.equal(["n2", "n9", "n1", "n10"]);
    });

    it("finds rows with every word, with KIND:PREFIX and ! for a negation", () => {
      expect([names({ search: "role:work" }), names({ search: "role:ker" })]).to.deep.equal([["n2", "n9", "n10"], []]);
      expect(names({ search: "ROLE:worker dc:fra1" })).to.deep.equal(["n2", "n10"]);
      expect(names({ search: "role:worker !dc:fra" })).to.deep.equal(["n9"]);
      expect([names({ search: "state:failed" }), names({ search: "name:n1" })]).to.deep.equal([["n2"], ["n1", "n10"]]);
      expect([names({ search: " slow  worker " }), names({ search: "controller" })]).to.deep.equal([["n9"], ["n1"]]);
      expect(names({ search: "!" })).to.deep.equal([]);
      expect(names({ search: "role:" })).to.have.length(4);
    });
  });
});

const started: RunEventBody = runStarted({
  title: "roll",
  command: "kcore orchestrate roll",
  nodes: ["n1", "n2"],
  stages: [
    { id: "build", title: "build the image", nodes: [], action: "local.command" },
    { id: "web", title: "web", nodes: ["n1", "n2"] },
    { id: "check", title: "check", nodes: ["n1"] },
  ],
});
const modelOf = (...bodies: readonly RunEventBody[]) =>
  reduceEvents([started, ...bodies].map((body, index) => ({ seq: index + 1, at: 1000 + index, ...body })));
const question = { id: "q1", kind: "confirm", text: "go on?", secret: false } as const;

describe("a node that has not begun", () => {
  it("shows what it waits for", () => {
    const built: RunEventBody[] = [
      { type: "stage.started", stage: "build" },
      { type: "stage.finished", stage: "build", outcome: "ok" },
    ];
    expect(waitsFor(modelOf(), "n2")).to.equal("waits for build the image");
    expect(waitsFor(modelOf(...built), "n2")).to.equal("waits for its turn: web");
    const step = { node: "n1", stage: "web", step: "web/a", title: "a", module: "file.managed" } as const;
    const begun = modelOf(...built, { type: "stage.started", stage: "web" }, { type: "step.started", ...step });
    expect(waitsFor(begun, "n1")).to.equal("waits for web");
    expect(waitsFor(modelOf(...built, { type: "question.asked", question }), "n2")).to.equal("waits for your answer");
    expect(waitsFor(modelOf({ type: "node.finished", node: "n2", outcome: "done" }), "n2")).to.equal(undefined);
  });
});
