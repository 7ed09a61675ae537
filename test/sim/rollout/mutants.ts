import type { Mutant } from "../mutants.ts";
import { missing, undisturbed, type RolloutSwarm } from "./swarm.ts";

interface RolloutMutant extends Omit<Mutant, "swarm"> {
  /** What has to go wrong for it to show, where few seeds have that. */
  readonly swarm?: Partial<RolloutSwarm>;
}

/** Bugs of rollouts that the simulator must find: most of them are what is easily got wrong, some are what the first draft had. */
export const rolloutMutants: Readonly<Record<string, RolloutMutant>> = {
  anyowner: {
    why: "a node takes orders of two owners of one epoch",
    swarm: { takeovers: 6, slow: 0.2, partitions: true },
    edits: [
      {
        file: "rollout/node-fence.ts",
        from: "if (epoch === last.epoch && owner !== last.owner)",
        to: "if (epoch < last.epoch && owner !== last.owner)",
      },
    ],
  },
  oldepoch: {
    why: "a node takes orders of the epoch before",
    edits: [{ file: "rollout/node-fence.ts", from: "if (epoch < last.epoch)", to: "if (epoch < last.epoch - 1)" }],
  },
  lwwowner: {
    why: "of two owners the later written one stands, whatever its epoch",
    swarm: { takeovers: 6, partitions: true, jumps: true },
    edits: [
      {
        file: "controller/cluster/registers.ts",
        from: 'updateOwner: { schema: Owner, merge: "epoch"',
        to: 'updateOwner: { schema: Owner, merge: "lww"',
      },
    ],
  },
  lwwrow: {
    why: "of two rows of a node the later written one stands, whatever its epoch",
    swarm: { takeovers: 6, partitions: true, jumps: true },
    edits: [
      {
        file: "controller/cluster/registers.ts",
        from: 'updateRow: { schema: Row, merge: "epoch"',
        to: 'updateRow: { schema: Row, merge: "lww"',
      },
    ],
  },
  lwwprogress: {
    why: "of two words for the whole the later written one stands, whatever its epoch",
    swarm: { takeovers: 6, partitions: true, jumps: true },
    edits: [
      {
        file: "controller/cluster/registers.ts",
        from: 'updateProgress: { schema: Progress, merge: "epoch"',
        to: 'updateProgress: { schema: Progress, merge: "lww"',
      },
    ],
  },
  lwwreport: {
    why: "of two words of a node the one that was heard later stands",
    swarm: { cutNodes: true, partitions: true, slow: 0.2, jumps: true },
    edits: [
      {
        file: "controller/cluster/registers.ts",
        from: 'updateReport: { schema: Report, merge: "epoch"',
        to: 'updateReport: { schema: Report, merge: "lww"',
      },
    ],
  },
  twice: {
    why: "a node takes an order that comes late again",
    edits: [
      {
        file: "rollout/node-fence.ts",
        from: "epoch === last.epoch && seq <= last.seq",
        to: "epoch === last.epoch && seq < last.seq - 2",
      },
    ],
  },
  oldmanifest: {
    why: "a node takes an older manifest from a later owner",
    swarm: { manifests: true, takeovers: 6, slow: 0.2 },
    edits: [{ file: "rollout/node-fence.ts", from: "if (generation < last.generation)", to: "if (generation < 0)" }],
  },
  forgets: {
    why: "a node forgets an update's orders as soon as it has another's",
    swarm: { second: true, takeovers: 4, slow: 0.2, duplicate: 0.3 },
    edits: [
      {
        file: "rollout/node-fence.ts",
        from: "past: known.filter(({ name }) => name !== fence.name)",
        to: "past: known.slice(0, 0)",
      },
    ],
  },
  busytaken: {
    why: "a busy node takes another manifest",
    edits: [
      { file: "rollout/node-fence.ts", from: "if (isBusy && !isSame)", to: "if (isBusy && isSame && generation < 0)" },
    ],
  },
  unfenced: {
    why: "nodes that have not confirmed their owner are not counted as down",
    swarm: { takeovers: 6, maxUnavailable: 1, workers: 4, strategy: "batch", approval: "auto", batchSize: 4 },
    edits: [
      {
        file: "rollout/starts.ts",
        from: "return !report || isDownBy(row) || ",
        to: "return isDownBy(row) || (report !== undefined && ",
      },
      {
        file: "rollout/starts.ts",
        from: "downStates.has(report.state) || isUnheard(row, report);",
        to: "(downStates.has(report.state) || isUnheard(row, report)));",
      },
    ],
  },
  notready: {
    why: "nodes that are not ready are not counted as down",
    swarm: missing,
    edits: [
      { file: "rollout/starts.ts", from: "view.nodes.get(id)?.isReady !== true || mayBeDownBy", to: "mayBeDownBy" },
    ],
  },
  lookonce: {
    why: "what may be down is looked at before a node prepares, and not again before it is activated",
    edits: [
      {
        file: "rollout/start-more.ts",
        from: "why ?? whyNotStart(view, id, { rows, starts, unavailable })",
        to: 'why ?? (row.phase === "prepared" ? undefined : whyNotStart(view, id, { rows, starts, unavailable }))',
      },
    ],
  },
  together: {
    why: "two controllers go at once",
    swarm: {
      ...undisturbed,
      controllers: 5,
      workers: 0,
      withControllers: true,
      maxUnavailable: 3,
      approval: "auto",
      hooks: false,
      gates: false,
      bad: 0,
      cancels: false,
      rollbacks: true,
      duration: 800_000,
    },
    edits: [
      {
        file: "rollout/starts.ts",
        from: "return node?.isController === true ?",
        to: "return node?.isController === true && isForced(view, around) ?",
      },
    ],
  },
  grantstwice: {
    why: "a controller grants an epoch to everybody who claims it",
    swarm: { partitions: false, takeovers: 6 },
    edits: [
      {
        file: "rollout/takeover.ts",
        from: "if (grant.controller === self && grant.epoch >= epoch) return false;",
        to: "if (grant.controller === self && grant.epoch > epoch) return false;",
      },
      {
        file: "controller/updates/takeover.ts",
        from: 'await records.write([{ key: of.grant(epoch, controllerId), value: { owner: claimant } }], "absent");',
        to: "await records.put([{ key: of.grant(epoch, `${controllerId}+${claimant}`), value: { owner: claimant } }]);",
      },
      {
        file: "controller/updates/takeover.ts",
        from: "yield { epoch: Number(epoch), controller, claimant: value.owner };",
        to: 'yield { epoch: Number(epoch), controller: controller.split("+")[0] ?? "", claimant: value.owner };',
      },
    ],
  },
  minority: {
    why: "the grants of a minority are enough",
    swarm: { controllers: 5, partitions: true, takeovers: 6 },
    edits: [
      {
        file: "rollout/takeover.ts",
        from: "givers.size * 2 > controllers.size",
        to: "givers.size * 3 > controllers.size",
      },
    ],
  },
  forgetsactive: {
    why: "a new owner takes all that it finds for nodes that were never begun",
    swarm: { takeovers: 6, slowNodes: true, approval: "auto" },
    edits: [
      {
        file: "rollout/advance.ts",
        from: 'if (!isNew && phase !== "cancelled") return undefined;',
        to: 'return phase === "preflight" ? to(view, row, "pending") : undefined;',
      },
    ],
  },
  early: {
    why: "nodes get an order before it is durable",
    edits: [
      {
        file: "controller/replica/core.ts",
        from: "this.options.journal.append(records).then(",
        to: "(this.options.journal.append(records), { then: (done: () => void, _: unknown) => done() }).then(",
      },
    ],
  },
  onlynews: {
    why: "an owner looks at an update only when something of it changes",
    swarm: missing,
    edits: [
      {
        file: "controller/updates/owner-loop.ts",
        from: "if (!isStopped && [...index.all()].some(isDue)) plan(tickMs);",
        to: "",
      },
    ],
  },
  sameorder: {
    why: "a node that knows an order is not given the next one",
    edits: [{ file: "controller/updates/exchange.ts", from: "known.seq === fence.seq", to: "known.seq <= fence.seq" }],
  },
  hastyclaim: {
    why: "a takeover waits for nobody's grant",
    swarm: { takeovers: 6 },
    edits: [
      {
        file: "controller/updates/takeover.ts",
        from: "if (force) return take();",
        to: "if (force || epoch > 1) return take();",
      },
    ],
  },
  stale: {
    why: "what was read of an update once is never read again",
    edits: [{ file: "controller/updates/update-records.ts", from: "      kept.delete(name);", to: "" }],
  },
  saidgood: {
    why: "a hook that failed is answered for as one that was done",
    swarm: { hooks: true, badHooks: 0.4, approval: "auto" },
    edits: [
      {
        file: "cli/update/attend.ts",
        from: "seq, owner, hook, ...end };",
        to: "seq, owner, hook, ...end, ok: true };",
      },
    ],
  },
  goeson: {
    why: "a failure does not stop what comes next",
    swarm: { bad: 0.3, workers: 4, approval: "auto" },
    edits: [
      {
        file: "rollout/decide.ts",
        from: 'phase === "failed" || phase === "cancelled" || phase === "rolled_back"',
        to: 'phase === "cancelled" || phase === "rolled_back"',
      },
    ],
  },
  interrupts: {
    why: "cancel interrupts an activation",
    swarm: { cancels: true, workers: 4, approval: "auto" },
    edits: [
      {
        file: "rollout/view.ts",
        from: '"pending", "preparing", "prepared", "draining"]',
        to: '"pending", "preparing", "prepared", "draining", "activating", "verifying"]',
      },
    ],
  },
  forward: {
    why: "nodes go back in the order in which they were started",
    swarm: { rollbacks: true, workers: 4, approval: "auto" },
    edits: [{ file: "rollout/roll-back.ts", from: "place(b) - place(a)", to: "place(a) - place(b)" }],
  },
  unpromoted: {
    why: "what comes behind the canaries does not wait for promotion",
    swarm: { strategy: "canary", workers: 4, approval: "auto" },
    edits: [{ file: "rollout/start-more.ts", from: "progress.promoted !== true", to: "progress.promoted === false" }],
  },
  nolockstep: {
    why: "a group begins while the one before has not ended",
    swarm: { strategy: "per-dc", workers: 4, approval: "auto" },
    edits: [
      {
        file: "rollout/start-more.ts",
        from: 'rows.has(id) && rows.get(id)?.phase !== "succeeded"',
        to: 'rows.get(id)?.phase === "pending"',
      },
    ],
  },
  oldreport: {
    why: "what a node said of the manifest before is believed of this one",
    swarm: { manifests: true, approval: "auto" },
    edits: [
      { file: "rollout/view.ts", from: "isOurs && fence.generation === generation ? report", to: "isOurs ? report" },
    ],
  },
  knowsrefused: {
    why: "an order that a busy node refused is never brought again",
    swarm: { manifests: true, slowNodes: true },
    edits: [
      {
        file: "agent/known-order.ts",
        from: "if (report?.epoch !== word) known",
        to: "if (word === undefined) known",
      },
    ],
  },
  lostorder: {
    why: "an order that could not be given to the updater is not asked for again",
    swarm: { drop: 0.5, duration: 150_000, takeovers: 0, approval: "auto" },
    edits: [
      { file: "agent/carry-orders.ts", from: "if (!either.aborted) onLost();", to: "if (either.aborted) onLost();" },
    ],
  },
  deafend: {
    why: "what nodes say after the end of a rollout is not heard",
    swarm: { takeovers: 6, cancels: true, slowNodes: true, slow: 0.2, cutNodes: true, workers: 4, approval: "auto" },
    edits: [
      {
        file: "rollout/decide.ts",
        from: "  const moved = moveOn(view, progress, rows);",
        to: '  const moved = progress.phase.startsWith("roll") && progress.phase !== "rolled_back" ? moveOn(view, progress, rows) : undefined;',
      },
    ],
  },
  undrained: {
    why: "a node is taken down with its work on it",
    swarm: { hooks: true, approval: "auto" },
    edits: [
      {
        file: "rollout/start-more.ts",
        from: 'to(view, row, view.spec.drain.enabled ? "draining" : "activating")',
        to: 'to(view, row, view.spec.drain.timeoutSeconds < 0 ? "draining" : "activating")',
      },
    ],
  },
  anydrain: {
    why: "a drain that failed is as good as one that was done",
    swarm: { hooks: true, badHooks: 0.4, approval: "auto" },
    edits: [
      { file: "rollout/advance.ts", from: 'if (failed) return fail(view, drained, "drain", failed.message);', to: "" },
    ],
  },
  keepsdrained: {
    why: "a node that was taken back does not get its work back",
    swarm: { hooks: true, rollbacks: true, approval: "auto" },
    edits: [
      {
        file: "rollout/hooks.ts",
        from: 'case "rolled_back":\n      return undrain;',
        to: 'case "rolled_back":\n      return [];',
      },
    ],
  },
  anygate: {
    why: "a gate that failed is as good as one that held",
    swarm: { gates: true, badHooks: 0.4, approval: "auto" },
    edits: [
      {
        file: "rollout/hooks.ts",
        from: "if (answer?.ok === true) continue;",
        to: 'if (answer?.ok === true || (answer && name !== "drain")) continue;',
      },
    ],
  },
  formerrow: {
    why: "an answer to a former row counts for the present one",
    swarm: {
      hooks: true,
      gates: true,
      badHooks: 0.3,
      lateAnswers: true,
      workers: 4,
      approval: "auto",
    },
    edits: [
      {
        file: "controller/updates/answer-hook.ts",
        from: "row?.generation === answer.generation && row.seq === answer.seq && isOfOwner",
        to: "row?.generation === answer.generation",
      },
      {
        file: "controller/updates/answer-hook.ts",
        from: "const value = { ...answer, epoch, owner };",
        to: "const value = { ...answer, seq: (isAsked ? row?.seq : undefined) ?? answer.seq, epoch, owner };",
      },
    ],
  },
  lastanswer: {
    why: "of two answers the last one counts",
    swarm: { gates: true, hooks: true, twoBastions: true, badHooks: 0.4, bastionCrashes: true, approval: "auto" },
    edits: [
      {
        file: "controller/updates/answer-hook.ts",
        from: "isForRow && answerable(view, node, row) === hook",
        to: "isForRow && (answerable(view, node, row) === hook || update.answers.has(hookKey(node, hook)))",
      },
    ],
  },
  deafagent: {
    why: "an agent that learns of a rollout by a heartbeat does not ask for its orders",
    swarm: { approval: "auto", nodeCrashes: false },
    edits: [
      {
        file: "agent/agent.ts",
        from: "if (this.#standing.concerned === true) this.#parts.onConcerned();",
        to: "",
      },
    ],
  },
  noend: {
    why: "an agent that no controller answers waits longer each time, without bound",
    swarm: { drop: 0.3, partitions: true, approval: "auto" },
    edits: [
      {
        file: "agent/follow-orders.ts",
        from: "pause = Math.min(2 * pause, pauseMs.longest);",
        to: "pause = 60 * pause;",
      },
    ],
  },
  ownupdate: {
    why: "an order of another update than the node's last one is not brought",
    swarm: { second: true, approval: "auto", takeovers: 0 },
    edits: [
      {
        file: "agent/follow-orders.ts",
        from: "return judgeOrder(accepted &&",
        to: "return (accepted?.fence.name ?? fence.name) === fence.name && judgeOrder(accepted &&",
      },
    ],
  },
  anyapplies: {
    why: "a controller that does not own an update takes its next manifest",
    swarm: { manifests: true, takeovers: 6, partitions: true, approval: "auto" },
    edits: [
      {
        file: "controller/updates/apply-update.ts",
        from: "if (update && update.owner.owner !== controllerId) {",
        to: 'if (update && controllerId === "") {',
      },
      {
        file: "cli/update/hand-over.ts",
        from: "present?.owner.endpoint ?? cluster.current()",
        to: "cluster.current()",
      },
    ],
  },
  anyanswer: {
    why: "an answer to one row counts for every one",
    swarm: { gates: true, hooks: true, takeovers: 4, approval: "auto" },
    edits: [
      {
        file: "rollout/hooks.ts",
        from: "seq === row.seq && epoch === row.epoch && owner === row.owner",
        to: "seq <= row.seq && epoch <= row.epoch && owner !== undefined",
      },
    ],
  },
  unwritten: {
    why: "a node begins a step before its journal holds it",
    edits: [
      {
        file: "updater/updater.ts",
        from: "    await this.#desk.say({ state: underWay[step] });",
        to: "    void underWay;",
      },
    ],
  },
  unmarked: {
    why: "systemd does not start the updater again after a power cut",
    edits: [
      {
        file: "updater/desk.ts",
        from: "if ((doing ?? next) && (await",
        to: "if (doing && next && (await",
      },
    ],
  },
  forgetsback: {
    why: "the journal forgets what a node ran before an update",
    swarm: { rollbacks: true, approval: "auto" },
    edits: [
      {
        file: "updater/desk.ts",
        from: "if (doing) Object.assign(journal, { previous, previousOf",
        to: "if (doing) Object.assign(journal, { previousOf",
      },
    ],
  },
  takesold: {
    why: "an order that the node refuses by its fence is taken from the inbox when the node is idle",
    edits: [
      {
        file: "updater/desk.ts",
        from: "if (!verdict.accept) {",
        to: 'if (!verdict.accept && (isBusy || verdict.why === "known")) {',
      },
    ],
  },
  countsback: {
    why: "a node counts its words by its clock alone",
    swarm: { jumps: true, nodeCrashes: true, approval: "auto" },
    edits: [
      {
        file: "updater/desk.ts",
        from: "this.#count = Math.max(this.#count + 1, (report?.epoch ?? 0) + 1, ports.clock());",
        to: "this.#count = ports.clock() + (report ? 0 : this.#count);",
      },
    ],
  },
  saysprepared: {
    why: "a preparation is told as done before it is",
    edits: [
      {
        file: "updater/updater.ts",
        from: "const prepared: Prepared = await this.#desk.during(way.prepare(() => Math.max(1, this.#desk.left(limit))));",
        to: "void way.prepare(() => limit).catch(() => undefined);\n    const prepared: Prepared = {};",
      },
    ],
  },
  nocontact: {
    why: "an activation holds though the agent has spoken with no controller",
    swarm: { approval: "auto" },
    edits: [
      {
        file: "updater/updater.ts",
        from: "const mark = isBastions ? undefined : doing.mark;",
        to: "const mark = isBastions ? doing.mark : undefined;",
      },
    ],
  },
  anypage: {
    why: "a gate on the node holds whatever it answers",
    swarm: { gates: true, badHooks: 0.4, approval: "auto" },
    edits: [{ file: "updater/gates.ts", from: "if (status !== http.status)", to: "if (status === undefined)" }],
  },
  stays: {
    why: "an activation that failed is not taken back",
    swarm: { bad: 0.3, approval: "auto" },
    edits: [
      {
        file: "updater/updater.ts",
        from: 'if (doing.step === "prepare") return this.#end',
        to: 'if (doing.step !== "roll_back") return this.#end',
      },
    ],
  },
  lostback: {
    why: "a way back that is owed is forgotten when the updater is ended",
    swarm: { bad: 0.3, nodeCrashes: true, approval: "auto" },
    edits: [
      {
        file: "updater/desk.ts",
        from: "    this.journal = journal;\n",
        to: '    this.journal = journal;\n    if (journal.doing?.stage === "back") delete journal.doing;\n',
      },
    ],
  },
  staysbehind: {
    why: "an update is not taken back where the node is on its target",
    swarm: { rollbacks: true, approval: "auto" },
    edits: [
      {
        file: "updater/way-back.ts",
        from: "if (wayBack.id === target.id) return undefined;",
        to: "if (now.id === target.id) return undefined;",
      },
    ],
  },
  emptyjournal: {
    why: "a journal is read as one that cannot be read",
    edits: [
      {
        file: "updater/read-journal.ts",
        from: "if (journal) {",
        to: "if (journal && journal.fence === undefined) {",
      },
    ],
  },
};

/** The first seed that finds each: CI looks for it from there. To be sought anew, with `--mutant NAME`, when what is simulated changes. */
export const foundAt: Readonly<Record<string, number>> = {
  anyowner: 34,
  oldepoch: 15,
  lwwowner: 17,
  lwwrow: 17,
  lwwprogress: 20,
  lwwreport: 179,
  twice: 1,
  oldmanifest: 42,
  forgets: 9,
  busytaken: 15,
  unfenced: 15,
  notready: 8,
  lookonce: 7,
  together: 3,
  grantstwice: 6,
  minority: 10,
  forgetsactive: 64,
  early: 1,
  onlynews: 6,
  sameorder: 14,
  hastyclaim: 1,
  stale: 1,
  saidgood: 2,
  goeson: 5,
  interrupts: 7,
  forward: 8,
  unpromoted: 7,
  nolockstep: 1,
  oldreport: 5,
  knowsrefused: 18,
  lostorder: 10,
  deafend: 235,
  undrained: 1,
  anydrain: 6,
  keepsdrained: 29,
  anygate: 5,
  anyanswer: 5,
  formerrow: 11,
  lastanswer: 10,
  deafagent: 3,
  noend: 12,
  ownupdate: 4,
  anyapplies: 1,
  unwritten: 1,
  unmarked: 1,
  forgetsback: 2,
  takesold: 15,
  countsback: 5,
  saysprepared: 1,
  nocontact: 2,
  anypage: 2,
  stays: 5,
  lostback: 36,
  staysbehind: 2,
  emptyjournal: 2,
};
