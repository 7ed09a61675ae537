import { statSync, type WriteStream } from "node:fs";
import { open } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { Writable, type Readable } from "node:stream";
import { finished, pipeline } from "node:stream/promises";
import { replaceFile } from "#base/file.ts";
import { run } from "#base/process.ts";
import { formatEvent } from "#engine/events/recording.ts";
import { logName, type RunFolder } from "#engine/run/run-folder.ts";
import { exitCodes, KcoreError, usageError, type Problem } from "#errors/problem.ts";
import type { CommonFlags } from "../options.ts";
import { findProject } from "../project/find-project.ts";
import { writeError, writeFailureReason } from "../project/write-asked.ts";
import { printJson } from "../terminal/print-json.ts";
import { sourceLines } from "../terminal/report-failure.ts";
import { kcoreVersion } from "../process/version.ts";
import { readRun, type KnownRun } from "./known-run.ts";
import { digestRecord } from "./print-digest.ts";

/** The formats of `kcore runs export`. */
export const exportFormats = ["ndjson", "json", "text", "markdown", "junit", "html", "cast", "tar"] as const;
type ExportFormat = (typeof exportFormats)[number];

/** The formats by the end of a file's name. */
const endings: Readonly<Record<string, ExportFormat>> = {
  ".ndjson": "ndjson",
  ".json": "json",
  ".txt": "text",
  ".md": "markdown",
  ".xml": "junit",
  ".html": "html",
  ".cast": "cast",
  ".tar.gz": "tar",
  ".tgz": "tar",
};

function formatByName(file: string): ExportFormat | undefined {
  return Object.entries(endings).find(([ending]) => file.endsWith(ending))?.[1];
}

export interface ExportFlags extends CommonFlags {
  readonly format?: ExportFormat;
  readonly file?: string;
}

/** `kcore runs export`: writes a run in the format of another program, to a file or to stdout. */
export async function exportRun(id: string, { project, format, file }: ExportFlags): Promise<void> {
  const run = await readRun(findProject(project), id);
  const chosen = format ?? (file === undefined ? "ndjson" : formatByName(file));
  if (chosen === undefined)
    throw usageError(`the name “${file}” does not tell a format`, `--format ${exportFormats.join("|")}`);
  if (chosen === "tar" && file === undefined && process.stdout.isTTY)
    throw usageError("an archive is no text for a terminal", "--file run.tar.gz");
  const out = file === undefined ? process.stdout : await openFile(file);
  if (chosen === "tar") await packInto(run, out);
  else out.write(await drawRun(chosen, run));
  if (out !== process.stdout) {
    out.end();
    await finished(out);
  }
}

/** Opens the file in place, since it may be a device; a regular file gets mode 0600, as the record has. @throws KcoreError USAGE */
async function openFile(file: string): Promise<WriteStream> {
  try {
    const handle = await open(file, "w", 0o600);
    if ((await handle.stat()).isFile()) await handle.chmod(0o600);
    return handle.createWriteStream();
  } catch (cause) {
    throw writeError(file, cause);
  }
}

/** A recorded run as text in a format of {@link exportFormats}. */
export async function drawRun(format: Exclude<ExportFormat, "tar">, run: KnownRun): Promise<string> {
  switch (format) {
    case "ndjson":
      return run.events.map(formatEvent).join("");
    case "json":
      return `${printJson(await digestRecord(run), 2)}\n`;
    case "junit":
      return (await import("#tui/junit.ts")).drawJunit(run.events);
    case "markdown":
      return (await import("#tui/markdown.ts")).drawMarkdown(await digestRecord(run));
    case "html": {
      const { drawReport } = await import("#tui/html/report.ts");
      return drawReport(run.model, {
        version: kcoreVersion(),
        sourceLine: sourceLines(run.folder.project),
        logOf: (node) => join(".kcore", "runs", run.model.runId, logName(node)),
      });
    }
    case "text":
      return (await drawPlain(run)).map(({ text }) => text).join("");
    case "cast":
      return (await import("#tui/plain.ts")).drawCast(run.model, await drawPlain(run));
  }
}

/** The plain view's text for each event, with the event's time. */
async function drawPlain({ events }: KnownRun): Promise<readonly { readonly at: number; readonly text: string }[]> {
  const { createPlainView } = await import("#tui/plain.ts");
  let text = "";
  const out = new Writable({
    decodeStrings: false,
    write: (chunk: string | Buffer, _, done) => {
      text += String(chunk);
      done();
    },
  }) as unknown as NodeJS.WriteStream;
  const view = createPlainView({ out, color: false });
  return events.map((event) => {
    text = "";
    view.draw(event);
    return { at: event.at, text };
  });
}

/** Writes the record's folder as a gzipped archive, by tar(1). @throws KcoreError USAGE */
async function packInto({ folder }: KnownRun, out: NodeJS.WritableStream): Promise<void> {
  const words = ["-C", dirname(folder.path), "--exclude=socket", "--exclude=reserve", "-cz", basename(folder.path)];
  const read = (stdout: Readable): Promise<void> => pipeline(stdout, out, { end: false });
  const { code } = await run(["tar", ...words], { read, inherit: "stderr" });
  if (code !== 0) throw usageError(`tar ended with exit code ${code}`, "--format ndjson");
}

/** The programs of reports, loaded before a run: kcore may be upgraded while the run takes hours. */
const reports = {
  html: () => import("#tui/html/report.ts"),
  junit: () => import("#tui/junit.ts"),
  markdown: () => Promise.all([import("#tui/markdown.ts"), import("#tui/digest.ts")]),
  json: () => import("#tui/digest.ts"),
} satisfies Partial<Record<ExportFormat, () => Promise<unknown>>>;

function reportFormat(file: string): keyof typeof reports | undefined {
  const format = formatByName(file) ?? "";
  return Object.hasOwn(reports, format) ? (format as keyof typeof reports) : undefined;
}

/**
 * Checks the names of reports before the run begins, and loads the programs that write them.
 * @throws KcoreError REPORT_KIND_UNKNOWN, REPORT_UNWRITABLE
 */
export async function prepareReports(files: readonly string[]): Promise<void> {
  const problems = files.flatMap((file) => reportNameProblem(file) ?? []);
  if (problems.length > 0) throw new KcoreError(problems);
  for (const file of files) await reports[reportFormat(file) ?? "json"]();
}

function reportNameProblem(file: string): Problem | undefined {
  if (reportFormat(file) === undefined)
    return {
      code: "REPORT_KIND_UNKNOWN",
      message: `the name “${file}” does not tell which kind of report is wanted`,
      hint: "end it with .html, .xml, .md or .json",
    };
  const folder = dirname(resolve(file));
  if (statSync(folder, { throwIfNoEntry: false })?.isDirectory()) return undefined;
  return {
    code: "REPORT_UNWRITABLE",
    message: `there is no folder ${folder} for the report “${file}”`,
    hint: `mkdir -p ${folder}`,
  };
}

/**
 * Writes reports from a run's record, each whole or not at all, readable for its owner only as the record is.
 * @throws KcoreError REPORT_KIND_UNKNOWN, REPORT_UNWRITABLE, RUN_RECORD_CORRUPT
 */
export async function writeReports(files: readonly string[], folder: RunFolder): Promise<void> {
  if (files.length === 0) return;
  await prepareReports(files);
  const run = await readRun(folder.project, folder.id);
  for (const file of files) {
    const text = await drawRun(reportFormat(file) ?? "json", run);
    try {
      await replaceFile(resolve(file), text);
    } catch (cause) {
      const { why } = writeFailureReason(file, cause);
      throw new KcoreError(
        {
          code: "REPORT_UNWRITABLE",
          message: `the report “${file}” could not be written: ${why}`,
          hint: `the run's record is whole: kcore runs export ${folder.id} --file FILE`,
        },
        { cause, exitCode: exitCodes.failed },
      );
    }
  }
}
