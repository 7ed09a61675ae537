import { quote } from "#base/quote.ts";
import { realTimers } from "#base/timers.ts";
import type { RunEvent } from "#engine/events/event.ts";
import type { Dialogue, NodeProgram } from "#engine/session/dialogue.ts";
import { type ExitCode, exitCodes, KcoreError } from "#errors/problem.ts";
import { detectCi, escapeForCi } from "#tui/ci.ts";
import { drawFailedAnswers } from "../adhoc/answers.ts";
import { printJson } from "../terminal/print-json.ts";
import { wantsColor } from "../terminal/report-failure.ts";
import { runHere } from "../watch/run-here.ts";
import { requestOf, type RunFlags } from "../watch/run-request.ts";
import { collectSteps } from "../watch/step-results.ts";
import { inOrder, lineDrawer, type LogEntry, mergeByTime, parseEntry } from "./log-entries.ts";

/** The words for `journalctl`. */
export interface LogQuery {
  readonly unit?: readonly string[];
  readonly follow?: boolean;
  readonly since?: string;
  readonly lines?: number;
  readonly grep?: string;
}

/** Prints the journals of the nodes, merged by time. @throws KcoreError as `runHere` */
export async function showLogs(flags: RunFlags & LogQuery & { readonly output: "plain" | "json" }): Promise<ExitCode> {
  const journals = new Map<string, PromiseWithResolvers<NodeProgram | undefined>>();
  let draw = (entry: LogEntry): string => `${printJson(entry)}\n`;
  const print = (entry: LogEntry): void => void process.stdout.write(escapeForCi(detectCi(process.env), draw(entry)));
  const printAll = async (entries: AsyncIterable<LogEntry>, each = print): Promise<void> => {
    for await (const entry of entries) {
      each(entry);
      if (process.stdout.writableNeedDrain) await new Promise((done) => process.stdout.write("", done));
    }
  };
  let printed: Promise<unknown> | undefined;
  const begin = (nodes: readonly string[]): void => {
    for (const node of nodes) journals.set(node, Promise.withResolvers());
    if (flags.output === "plain") draw = lineDrawer(nodes, wantsColor(process.stdout));
    const sources = [...journals].map(([node, { promise }]) => entriesOf(node, promise));
    const soon = inOrder(print, realTimers);
    printed = flags.follow
      ? Promise.all(sources.map((source) => printAll(source, soon)))
      : printAll(mergeByTime(sources));
  };
  const onEvent = (event: RunEvent): void => {
    if (event.type === "run.started") begin(event.nodes);
    if (event.type === "node.finished") journals.get(event.node)?.resolve(undefined);
  };
  const speak: Dialogue["speak"] = async (node, program) => {
    journals.get(node)?.resolve(program);
    await program.drained;
    const said = program.stderrTail().trim();
    if (said === "") return;
    const hint = `its logs are files, perhaps: kcore exec --on ${node} -- tail /var/log/messages`;
    throw new KcoreError(
      said === noJournal
        ? { code: "TOOL_MISSING", message: `${node} has no journalctl`, hint }
        : { code: "STEP_FAILED", message: `journalctl on ${node}: ${said}` },
      { exitCode: exitCodes.failed },
    );
  };
  const steps = collectSteps();
  // All nodes are read at once, as a merge needs the next entry of each.
  const request = requestOf({ ...flags, concurrency: 100_000 }, { kind: "exec", argv: ["logs"], shell: false });
  const { exitCode, model } = await runHere(flags, request, onEvent, { dialogue: { text: journalText(flags), speak } });
  await printed;
  if (exitCode !== exitCodes.interrupted)
    process.stderr.write(drawFailedAnswers(steps.results(model).filter(({ outcome }) => outcome !== "done")));
  return exitCode;
}

async function* entriesOf(node: string, journal: Promise<NodeProgram | undefined>): AsyncGenerator<LogEntry> {
  let rest = "";
  const decoder = new TextDecoder();
  for await (const chunk of (await journal)?.stdout ?? []) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    yield* lines.map((line) => parseEntry(node, line)).filter((entry) => entry !== undefined);
    // Longer than any entry that journald takes of its own accord.
    if (rest.length > 1 << 24) rest = "";
  }
}

const noJournal = "no journalctl";
const fields = "MESSAGE,PRIORITY,SYSLOG_IDENTIFIER,_PID,_SOURCE_REALTIME_TIMESTAMP,_SYSTEMD_UNIT";

/** The program that prints the entries, one a line; the last 100 unless the query says otherwise. */
export function journalText({ unit = [], follow = false, since, lines, grep }: LogQuery): string {
  const count = lines ?? (since === undefined ? 100 : "all");
  // Some versions print the last entries that match in the reverse order.
  const isCutHere = grep !== undefined && !follow && count !== "all";
  const words = [
    "journalctl",
    "--no-pager",
    "--quiet",
    "--all",
    "--output=json",
    `--output-fields=${fields}`,
    ...unit.map((name) => `--unit=${name}`),
    ...(since === undefined ? [] : [`--since=${since}`]),
    ...(grep === undefined ? [] : [`--grep=${grep}`]),
    ...(isCutHere ? [] : [`--lines=${count}`]),
    ...(follow ? ["--follow"] : []),
  ];
  const line = words.map(quote).join(" ");
  return `command -v journalctl >/dev/null 2>&1 || { echo ${noJournal} >&2; exit 1; }
${isCutHere ? `${line} | tail -n ${count}` : `exec ${line}`}`;
}
