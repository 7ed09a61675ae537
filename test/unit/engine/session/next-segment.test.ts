import { expect } from "chai";
import type { StepResults } from "#engine/session/session-events.ts";
import { nextBatch } from "#engine/session/next-segment.ts";
import type { UnresolvedStep } from "#engine/states/planned-step.ts";
import { sh } from "#engine/step/sh.ts";
import { draftOf } from "#support/sessions.ts";

const step = { want: {}, probe: sh`:` };
/** Results without a frame of any step. */
const noResults: StepResults = {
  outcomeOf: () => undefined,
  wasStarted: () => false,
  problemOf: () => undefined,
  registered: () => undefined,
  facts: {},
};

describe("nextBatch", () => {
  const batchOf = (drafts: readonly UnresolvedStep[], facts?: Readonly<Record<string, unknown>>) => {
    const queue = drafts.map((draft) => ({ key: draft.id, draft }));
    const known = { drafts: new Map(drafts.map((draft) => [draft.id, draft])), registered: new Map(), facts };
    const { steps, rest, facts: wants } = nextBatch(queue, known, noResults, false);
    return { steps: steps.map(({ key }) => key), rest: rest.map(({ key }) => key), wants };
  };
  const first = draftOf("first", step, { register: "first" });
  const last = draftOf("last", step);

  it("ends before a step that depends on facts, until they are gathered", () => {
    const factual = draftOf("factual", step, { needs: { facts: true, steps: [] } });
    const drafts = [first, factual, last];
    expect(batchOf(drafts)).to.deep.equal({ steps: ["test/first"], rest: ["test/factual", "test/last"], wants: true });
    const all = ["test/first", "test/factual", "test/last"];
    expect(batchOf(drafts, { os: "debian" })).to.deep.equal({ steps: all, rest: [], wants: false });
  });

  it("ends before a step that depends on a step of the same batch", () => {
    const dependent = draftOf("dependent", step, { needs: { facts: false, steps: ["first"] } });
    const wanted = { steps: ["test/first"], rest: ["test/dependent", "test/last"], wants: false };
    expect(batchOf([first, dependent, last])).to.deep.equal(wanted);
  });

  it("ends with a step that reboots the node", () => {
    const boot = draftOf("boot", { ...step, ends: "boot" });
    expect(batchOf([first, boot, last])).to.deep.include({ steps: ["test/first", "test/boot"], rest: ["test/last"] });
  });
});
