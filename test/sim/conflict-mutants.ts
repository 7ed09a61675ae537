import type { Mutant } from "./mutants.ts";

/** Bugs in the handling of concurrent writes. */
export const conflictMutants: Readonly<Record<string, Mutant>> = {
  sequentialconflicts: {
    why: "every overwrite counts as a conflict (kcore's K12)",
    edits: [
      {
        file: "crdt/conflict.ts",
        from: "a.text !== b.text && !isSameDot(a, b) && !hasSeen(a, b) && !hasSeen(b, a);",
        to: "a.text !== b.text && !isSameDot(a, b) && (a.o !== b.o || hasSeen(a, a));",
      },
      {
        file: "crdt/lww-map.ts",
        from: "if ((this.siblings.of(key).length === 0 && hasSeen(standing, lost)) || !this.#isContested(key)) return [];",
        to: "if (standing.o === lost.o || hasSeen(lost, standing) || !this.#isContested(key)) return [];",
      },
      { file: "crdt/siblings.ts", from: "        !hasSeen(standing, each) &&\n", to: "" },
    ],
  },
  silentconflicts: {
    why: "a conflict is noted only if the arriving write wins",
    edits: [
      {
        file: "crdt/lww-map.ts",
        from: "if (current) siblings.push(...(wins ?",
        to: "if (current && wins) siblings.push(...(wins ?",
      },
    ],
  },
  explodingconflicts: {
    why: "a write that its own side superseded is listed as a conflict (V2)",
    seed: 3,
    edits: [
      {
        file: "crdt/siblings.ts",
        from: "!candidates.some((later) => later !== each && hasSeen(later, each)),",
        to: "candidates.length > 0,",
      },
    ],
  },
  homeboundconflicts: {
    why: "losing writes are not sent, so a peer that pulls later never learns of the conflict",
    edits: [
      {
        file: "crdt/lww-map.ts",
        from: "return this.#registers.get(register.key) === register || this.siblings.has(register);",
        to: "return this.#registers.get(register.key) === register;",
      },
    ],
  },
  forgottenconflicts: {
    why: "a snapshot has the winning writes, but not the losing ones",
    seed: 24,
    edits: [
      {
        file: "controller/replica/cluster-state.ts",
        from: "const registers = [...this.map.all(), ...this.map.siblings.all()];",
        to: "const registers = [...this.map.all()];",
      },
    ],
  },
  equalsforgotten: {
    why: "a losing write equal to the winner is forgotten at once, though a later write may not have seen it",
    seed: 5,
    edits: [
      {
        file: "crdt/siblings.ts",
        from: "        !isSameDot(each, standing) &&\n",
        to: "        !isSameDot(each, standing) && each.text !== standing.text &&\n",
      },
    ],
  },
  acksforgotten: {
    why: "an acknowledged conflict is listed again on a controller that the losing write reaches later",
    seed: 32,
    edits: [
      {
        file: "crdt/siblings.ts",
        from: "if (this.#isAcknowledged(id)) this.#settled.add(each);",
        to: 'if (this.#isAcknowledged("")) this.#settled.add(each);',
      },
    ],
  },
  orphanedconflicts: {
    why: "a deletion is forgotten before the writes that lost to it",
    seed: 5,
    edits: [
      { file: "controller/replica/tombstone-gc.ts", from: " && !map.siblings.of(key).length", to: "" },
      {
        file: "controller/replica/cluster-state.ts",
        from: "if (!isSibling && this.map.siblings.of(register.key).length > 0) continue;",
        to: "",
      },
    ],
  },
  deafreject: {
    why: "a reject that no approve has read does not count (V1)",
    seed: 5,
    edits: [
      {
        file: "controller/cluster/rejects.ts",
        from: `return rejects.length > 0 ? "rejected" : (approval?.value.state ?? "pending");`,
        to: `return rejects.length < 0 ? "rejected" : (approval?.value.state ?? "pending");`,
      },
    ],
  },
};
