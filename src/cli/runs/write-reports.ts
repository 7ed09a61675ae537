import { statSync } from "node:fs";
import { dirname, extname, join, resolve } from "node:path";
import { logName, type RunFolder } from "#engine/run/run-folder.ts";
import { exitCodes, KcoreError, type Problem } from "#errors/problem.ts";
import { replaceFile } from "#base/file.ts";
import { whyUnwritten } from "../project/write-asked.ts";
import { printJson } from "../terminal/print-json.ts";
import { sourceLines } from "../terminal/report-failure.ts";
import { kcoreVersion } from "../version.ts";
import { readRun, type KnownRun } from "./known-run.ts";
import { digestOf } from "./print-digest.ts";

const kinds = [".html", ".xml", ".md", ".json"] as const;
type Kind = (typeof kinds)[number] extends `.${infer Name}` ? Name : never;

/** A report of a recorded run: a page for a browser, JUnit XML for a CI, Markdown for a comment, or JSON for programs. */
export async function drawReport(kind: Kind, run: KnownRun): Promise<string> {
  switch (kind) {
    case "xml":
      return (await import("#tui/junit.ts")).drawJunit(run.events);
    case "md":
      return (await import("#tui/markdown.ts")).drawMarkdown(await digestOf(run));
    case "json":
      return `${printJson(await digestOf(run), 2)}\n`;
    case "html": {
      const { drawReport: drawPage } = await import("#tui/html/report.ts");
      return drawPage(run.model, {
        version: kcoreVersion(),
        sourceLine: sourceLines(run.folder.project),
        logOf: (node) => join(".kcore", "runs", run.model.runId, logName(node)),
      });
    }
  }
}

/**
 * Looks at the names before the run begins: a kind that nobody knows, or a folder that is not there, must not show only
 * when the run is over. @throws KcoreError REPORT_KIND_UNKNOWN, REPORT_UNWRITABLE
 */
export async function prepareReports(files: readonly string[]): Promise<void> {
  const problems = files.map(problemOf).filter((problem) => problem !== undefined);
  if (problems.length > 0) throw new KcoreError(problems);
  // Loaded now: a run may take hours, and kcore may be upgraded under it.
  const wanted = new Set(files.map(kindOf));
  if (wanted.has("html")) await import("#tui/html/report.ts");
  if (wanted.has("xml")) await import("#tui/junit.ts");
  if (wanted.has("md")) await import("#tui/markdown.ts");
  if (wanted.has("md") || wanted.has("json")) await import("#tui/digest.ts");
}

function problemOf(file: string): Problem | undefined {
  if (kindOf(file) === undefined)
    return {
      code: "REPORT_KIND_UNKNOWN",
      message: `the name “${file}” does not tell which kind of report is wanted`,
      hint: `end it with ${kinds.slice(0, -1).join(", ")} or ${kinds.at(-1)}`,
    };
  const folder = dirname(resolve(file));
  if (statSync(folder, { throwIfNoEntry: false })?.isDirectory()) return undefined;
  return {
    code: "REPORT_UNWRITABLE",
    message: `there is no folder ${folder} for the report “${file}”`,
    hint: `mkdir -p ${folder}`,
  };
}

function kindOf(file: string): Kind | undefined {
  return kinds.find((kind) => kind === extname(file))?.slice(1) as Kind | undefined;
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
    const text = await drawReport(kindOf(file) ?? "html", run);
    try {
      await replaceFile(resolve(file), text);
    } catch (cause) {
      const { why } = whyUnwritten(file, cause);
      throw new KcoreError(
        {
          code: "REPORT_UNWRITABLE",
          message: `the report “${file}” could not be written: ${why}`,
          hint: `the run's record is whole; write it elsewhere: kcore runs show ${folder.id}`,
        },
        { cause, exitCode: exitCodes.failed },
      );
    }
  }
}
