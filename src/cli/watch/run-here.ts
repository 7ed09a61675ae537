import { randomBytes } from "node:crypto";
import { buffer } from "node:stream/consumers";
import type { Question, RunEvent, RunEventBody } from "#engine/events/event.ts";
import { cleanStrings } from "#engine/events/clean.ts";
import { RunFold } from "#engine/events/reduce.ts";
import { createRedactor } from "#engine/events/redact.ts";
import type { RunModel } from "#engine/events/run-model.ts";
import { keepFacts } from "#engine/facts/node-files.ts";
import type { RunRequest } from "#engine/orchestrate/run-types.ts";
import { OutputCap } from "#engine/run/output-cap.ts";
import { Questions } from "#engine/run/questions.ts";
import { newRunId } from "#engine/run/run-folder.ts";
import { reportUnwritable } from "#engine/run/unwritable.ts";
import { recordRuns, trailFolder } from "#engine/run/run-trail.ts";
import type { Dialogue } from "#engine/session/dialogue.ts";
import { runnerlessSessions, type RunnerlessOptions } from "#engine/session/runnerless-session.ts";
import { knownSecrets } from "#engine/step/secret.ts";
import { exitCodes, type ExitCode } from "#errors/problem.ts";
import { omitUndefined } from "#base/omit-undefined.ts";
import { findProject } from "../project/find-project.ts";
import { gitState } from "../process/git-state.ts";
import { loadParts } from "../process/load-run-parts.ts";
import { whoAmI } from "../process/who.ts";
import { quoteWord } from "#tui/repeat-command.ts";
import { tellWait } from "./step-results.ts";
import { canPrompt } from "../terminal/prompt.ts";
import { requestOf, type RunFlags } from "./run-request.ts";
import { promptInTurn } from "./run-prompts.ts";

/** Milliseconds that a question waits for an answer. */
const answerMs = 30 * 60_000;

/**
 * Carries out `exec`, `ping`, `facts` or `unlock` in this process, without locks or runners on the nodes; or a dry run that leaves no
 * record. One entry in the audit trail, unless the caller writes one (`isAudited` is false). `collects`: the caller keeps all output,
 * so the output is capped. `dialogue` takes the place of the command of `exec`.
 * @throws KcoreError with every problem of the input, RUN_RECORD_UNWRITABLE before the first connection
 */
export async function runHere(
  flags: RunFlags,
  given: RunRequest,
  onEvent: (event: RunEvent) => void,
  {
    collects = false,
    isAudited = true,
    dialogue,
  }: { readonly collects?: boolean; readonly isAudited?: boolean; readonly dialogue?: Dialogue } = {},
): Promise<{ readonly exitCode: ExitCode; readonly model: RunModel }> {
  const project = findProject(flags.project);
  const request = flags.refreshFacts ? await refreshFacts(project, flags, given) : given;
  const who = whoAmI();
  const created = Date.now();
  const id = newRunId(created);
  const fold = new RunFold();
  const redactor = createRedactor([], knownSecrets);
  const [stop, abort] = [new AbortController(), new AbortController()];
  let seq = 0;
  let isSingleNode = false;
  const interrupt = (): void => {
    if (stop.signal.aborted) process.exit(exitCodes.interrupted);
    // No runner can go on alone, so the first Ctrl-C also aborts; the second one ends this process.
    stop.abort("stop");
    abort.abort("abort");
  };
  const passOn = (body: RunEventBody): void => {
    const event = { seq: (seq += 1), at: Date.now(), ...body };
    if (event.type === "run.started") {
      isSingleNode = event.nodes.length === 1;
      const { at, command, nodes } = event;
      if (isAudited)
        reportUnwritable(trailFolder(project), () =>
          recordRuns(project, at, { type: "adhoc.started", who, command, nodes }),
        );
    }
    if (event.type === "node.facts") {
      const { node, facts, at } = event;
      keepFacts(project, { node, run: id, gathered: at, facts });
    }
    onEvent(event);
    fold.add(event);
    if (event.type.startsWith("question.")) prompt(fold.borrowedModel.questions);
  };
  const cap = new OutputCap();
  const emit = (body: RunEventBody): void => {
    for (const event of redactor.pass(cleanStrings(body))) {
      // Output that the caller does not keep needs no cap.
      const capped = collects ? cap.pass(event, 0) : event;
      if (capped) passOn(capped);
    }
  };
  const questions = new Questions({
    emit,
    mayBeAnswered: canPrompt,
    onSecret: (value) => redactor.add(value),
    stopped: stop.signal,
    patience: answerMs,
  });
  const prompt = promptInTurn((question, value) => questions.answer(question, value, who), interrupt);
  const isDryRun = request.what.kind === "orchestration" || request.what.kind === "state";
  const runnerless = () =>
    runnerlessSessions({ ...queryOf(request.what), stdin: stdinSource(() => isSingleNode), dialogue });
  const header = { version: 1, id, request, nonce: randomBytes(16).toString("hex"), who, created } as const;
  const ask = (question: Omit<Question, "id">): Promise<string> => questions.ask(question);
  const stage = { header: { ...header, attended: canPrompt() }, emit, ask, earlier: [] };
  const signals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
  for (const signal of signals) process.on(signal, interrupt);
  // The reader of stdout may close it (`kcore exec … | head -1`).
  process.stdout.once("error", interrupt);
  try {
    const perform = await (isDryRun ? loadParts(undefined, false) : loadParts(runnerless()));
    const at = isDryRun ? await gitState(project) : {};
    const { exitCode } = await perform({ stage: { ...stage, stop: stop.signal, abort: abort.signal }, project, ...at });
    redactor.flush().forEach(passOn);
    return { exitCode, model: fold.model };
  } finally {
    for (const signal of signals) process.off(signal, interrupt);
    process.stdout.off("error", interrupt);
    // An open stdin would keep the process alive after `exec`; after other commands a later question may still read it.
    if (request.what.kind === "exec" && !dialogue) process.stdin.destroy();
  }
}

/**
 * Gathers the facts of the nodes that `--on` selects by facts. The returned request ignores older facts, so an unreachable
 * node has none.
 */
export async function refreshFacts(project: string, flags: RunFlags, request: RunRequest): Promise<RunRequest> {
  const [{ nodesNeedingFacts }, { ownRoster }] = await Promise.all([
    import("#engine/roster/targets.ts"),
    import("../roster/own-roster.ts"),
  ]);
  const factsSince = Date.now();
  const nodes = request.on === undefined ? [] : nodesNeedingFacts(request.on, ownRoster(project));
  if (nodes.length > 0) {
    const { wait, concurrency } = flags;
    const own = { project, on: [nodes.map(({ name }) => name).join(",")], ...omitUndefined({ wait, concurrency }) };
    const command = `kcore facts --on ${quoteWord(own.on[0] ?? "")}`;
    await runHere(own, requestOf(own, { kind: "facts" }, { command }), tellWait);
  }
  return { ...request, factsSince };
}

function queryOf(what: RunRequest["what"]): Pick<RunnerlessOptions, "query" | "run"> {
  if (what.kind === "unlock") return { query: what.isLook ? "holder" : "unlock", ...omitUndefined({ run: what.run }) };
  return { query: what.kind === "facts" ? "facts" : "ping" };
}

/**
 * A source of kcore's stdin for commands: a stream for a single node, the whole input for each of several. A terminal's
 * input goes to a single node only.
 */
function stdinSource(isSingleNode: () => boolean): () => AsyncIterable<Uint8Array> {
  let whole: Promise<Uint8Array> | undefined;
  return async function* () {
    if (isSingleNode()) yield* process.stdin as AsyncIterable<Uint8Array>;
    else if (!process.stdin.isTTY) yield await (whole ??= buffer(process.stdin));
  };
}
