import type { Question, RunControl, RunEvent, RunEventBody } from "#engine/events/event.ts";
import { cleanStrings } from "#engine/events/clean.ts";
import { keepFacts } from "#engine/facts/node-files.ts";
import { createRedactor } from "#engine/events/redact.ts";
import { reduceEvents } from "#engine/events/reduce.ts";
import { runTime } from "#engine/events/run-model.ts";
import { exitCodes, KcoreError, type ExitCode, type Problem } from "#errors/problem.ts";
import { NodeLogs } from "./node-logs.ts";
import type { Notifier } from "./notify.ts";
import { OutputCap } from "./output-cap.ts";
import { markProcess } from "./process-mark.ts";
import { Questions } from "./questions.ts";
import { RecordWriter } from "./record-writer.ts";
import { changeHeader, writeHeader, type RunFolder, type RunHeader } from "./run-folder.ts";
import { lockRun } from "./run-lock.ts";
import { RunSocket } from "./run-socket.ts";
import { RunTrail } from "./run-trail.ts";
import { roomHint, recordUnwritable } from "./unwritable.ts";

/** The means that a run's process gives to `perform`. */
export interface PerformContext {
  readonly header: RunHeader;
  readonly emit: (event: RunEventBody) => void;
  /** Aborted when no new step may start. */
  readonly stop: AbortSignal;
  /** Aborted when the running steps are to be ended too; `stop` is aborted then as well. */
  readonly abort: AbortSignal;
  readonly ask: (question: Omit<Question, "id">) => Promise<string>;
  /** Events of the run's earlier part, when it is resumed. */
  readonly earlier: readonly RunEvent[];
}

export interface ConductOptions {
  readonly folder: RunFolder;
  readonly header: RunHeader;
  /** Performs the run and resolves with its exit code; it may emit `run.finished` itself. */
  readonly perform: (context: PerformContext) => Promise<{ readonly exitCode: ExitCode }>;
  /** Makes the notifier of the run's events, once the run may begin. @throws KcoreError */
  readonly notifier?: () => Promise<Pick<Notifier, "handle"> | undefined>;
  /** Called once views can connect. */
  readonly onListening?: () => void;
  /** Values that no record and no view may ever hold; called at each event. */
  readonly secrets?: () => ReadonlySet<string>;
  readonly now?: () => number;
  /** Milliseconds that a question waits for an answer; default: half an hour. */
  readonly answerPatience?: number;
  /** Milliseconds that views may take to fetch the last events; default: ten seconds. */
  readonly viewPatience?: number;
}

/**
 * Drives a run in this process: locks the run, writes its record, serves its views and carries out their controls. Resolves with the
 * run's exit code when the run has ended, and every view has all events or `viewPatience` is over.
 * @throws KcoreError RUN_ALIVE when another process drives the run, RUN_RECORD_CORRUPT
 */
export async function conductRun(options: ConductOptions): Promise<ExitCode> {
  const { folder, header, perform, secrets = () => new Set<string>(), now = Date.now } = options;
  const releaseLock = await lockRun(header);
  const [stop, abort] = [new AbortController(), new AbortController()];
  const redactor = createRedactor([], secrets);
  let finished: Extract<RunEventBody, { type: "run.finished" }> | undefined;
  let socket: RunSocket | undefined;
  let failure: Problem | undefined;
  let { params } = header.request;

  const fail = (error: unknown) => {
    if (failure) return;
    failure = unwritableRecord(folder, error);
    // Nothing is started that could not be recorded (F-6); the nodes' own journals have the steps that run there.
    stop.abort("stop");
  };
  const onWritten = (bytes: Uint8Array, at: number) => socket?.push(bytes, at);
  const record = new RecordWriter({ folder, now, onWritten, onError: fail });
  const logs = new NodeLogs(folder, now, fail);
  const cap = new OutputCap();
  const trail = new RunTrail(folder, now, record.earlier);
  const write = (body: RunEventBody) => {
    const event = cap.pass(body, record.size);
    if (failure || !event) return;
    try {
      trail.handle(event);
    } catch (error) {
      return fail(error);
    }
    const at = record.append(event);
    if (event.type === "node.facts") {
      const { node, facts } = event;
      keepFacts(folder.project, { node, run: folder.id, gathered: now(), facts });
    }
    if (event.type === "run.started" && event.resumed) keepPart(at);
    logs.add(event);
    if (event.type !== "run.finished") notify(event);
  };
  let notifier: Pick<Notifier, "handle"> | undefined;
  let notices: Promise<unknown> = Promise.resolve();
  const notify = (event: RunEventBody): void => {
    const sent = notifier?.handle(event)?.then((texts) => texts.forEach((text) => write({ type: "warning", text })));
    if (sent) notices = Promise.all([notices, sent]);
  };
  const emit = (body: RunEventBody) => {
    if (finished) return;
    const events = redactor.pass(cleanStrings(body));
    for (const event of events)
      if (event.type === "run.finished") finished = event;
      else write(event);
  };

  /** Notes in the header when the present part began: a list of runs reads only the ends of a record. */
  const keepPart = (at: number) =>
    changeHeader(folder, { part: { at, ranBefore: runTime(reduceEvents(record.earlier)) } });

  /** Keeps the answer for a parameter in the request, so that a resumed run has the same. */
  const keepParam = (name: string, value: string) => {
    params = { ...params, [name]: value };
    changeHeader(folder, { request: { ...header.request, params } });
  };

  const halt = (how: "stop" | "abort", by: string) => {
    if ((how === "stop" ? stop : abort).signal.aborted) return;
    emit({ type: "run.stopping", how, by });
    stop.abort("stop");
    if (how === "abort") abort.abort("abort");
  };
  const questions = new Questions({
    emit,
    mayBeAnswered: () => header.attended || (socket?.hasAnswerer ?? false),
    onSecret: (value) => redactor.add(value),
    stopped: stop.signal,
    patience: options.answerPatience ?? 30 * 60_000,
    earlierCount: record.earlier.filter(({ type }) => type === "question.asked").length,
  });
  const onControl = (control: RunControl, by: string) => {
    if (control.type === "answer") questions.answer(control.id, control.value, by);
    else halt(control.type, by);
  };
  const onSignal = () => halt(stop.signal.aborted ? "abort" : "stop", "a signal");
  process.on("SIGTERM", onSignal);

  try {
    socket = await RunSocket.open({ folder, size: () => record.size, onControl });
    options.onListening?.();
    const mark = markProcess(process.pid);
    writeHeader(folder, { ...header, ...(mark ? { process: mark } : {}) });
    const { earlier } = record;
    const ask = async (question: Omit<Question, "id">) => {
      const answer = await questions.ask(question);
      if (question.param !== undefined && !question.secret) keepParam(question.param, answer);
      return answer;
    };
    const begin = async () => {
      notifier = await options.notifier?.();
      return perform({ header, emit, stop: stop.signal, abort: abort.signal, ask, earlier });
    };
    const end = await begin().then(
      ({ exitCode }) => finishedWith(exitCode),
      (error: unknown) => finishedBy(error, folder),
    );
    finished ??= cleanStrings(end);
    record.flush();
    // Read again: `fail` may have set it meanwhile, which the compiler cannot see.
    const stopped = failure as Problem | undefined;
    if (stopped) {
      record.releaseReserve();
      failure = undefined;
      finished = { ...finishedWith(exitCodes.failed), problem: stopped };
    }
    for (const event of [...redactor.flush(), ...redactor.pass(finished)]) {
      if (event.type === "run.finished") {
        // Notices of the end go out before the record has the end, so that the record can list failed notices.
        notify(event);
        await notices;
      }
      write(event);
    }
    record.flush();
    // Before the nodes' logs, which only repeat the record: on a full disk the trail needs the released reserve.
    await trail.end(finished).catch((error: unknown) => process.stderr.write(`${trailEndWarning(header, error)}\n`));
    logs.flush({ last: true });
    await socket.close(options.viewPatience ?? 10_000);
    return finished.exitCode as ExitCode;
  } finally {
    process.off("SIGTERM", onSignal);
    record.close();
    releaseLock();
  }
}

function finishedWith(exitCode: ExitCode): Extract<RunEventBody, { type: "run.finished" }> {
  const outcomes = {
    0: "done",
    1: "failed",
    2: "failed",
    3: "unreachable",
    // The exit code of a command whose dry run would change something (--fail-on-change): the run itself is done.
    4: "done",
    70: "failed",
    130: "interrupted",
  } as const;
  return { type: "run.finished", outcome: outcomes[exitCode], exitCode };
}

function finishedBy(error: unknown, folder: RunFolder): Extract<RunEventBody, { type: "run.finished" }> {
  if (error instanceof KcoreError) {
    const [problem] = error.problems;
    return { ...finishedWith(error.exitCode), ...(problem ? { problem, problems: error.problems } : {}) };
  }
  const problem = recordUnwritable(folder.path, error);
  if (problem) return { ...finishedWith(exitCodes.failed), problem: { ...problem, hint: roomHint(folder) } };
  const stack = error instanceof Error ? (error.stack ?? error.message) : String(error);
  const hint = "please report it with these lines and the command";
  return {
    ...finishedWith(exitCodes.bug),
    problem: { code: "INTERNAL", message: "kcore met a bug of its own", detail: stack, hint },
  };
}

/** A line for process.log: the run keeps its outcome without an end in the trail, and `kcore audit verify` shows the gap. */
function trailEndWarning({ id }: RunHeader, error: unknown): string {
  return `the end of run ${id} could not be put into the audit trail: ${(error as Error).message}`;
}

function unwritableRecord(folder: RunFolder, error: unknown): Problem {
  const hint = roomHint(folder);
  const problem = recordUnwritable(folder.path, error);
  if (problem) return { ...problem, message: `${problem.message}, so the run stopped before its next step`, hint };
  const message = `the run's record cannot be written: ${(error as Error).message}`;
  return { code: "RUN_RECORD_UNWRITABLE", message, hint };
}
