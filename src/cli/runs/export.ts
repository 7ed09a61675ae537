import { once } from "node:events";
import { createWriteStream, type WriteStream } from "node:fs";
import { basename, dirname } from "node:path";
import { finished, pipeline } from "node:stream/promises";
import { Writable, type Readable } from "node:stream";
import { run } from "#base/process.ts";
import { formatEvent } from "#engine/events/recording.ts";
import { usageError } from "#errors/problem.ts";
import { findProject } from "../project/find-project.ts";
import { unwritten } from "../project/write-asked.ts";
import { drawReport } from "./write-reports.ts";
import { exportFormats, type ExportFlags, type ExportFormat } from "./export-formats.ts";
import { readRun, type KnownRun } from "./known-run.ts";

/** `kcore runs export`: a run in the form that another program wants, to a file or to the output. */
export async function exportRun(id: string, { project, format, file }: ExportFlags): Promise<void> {
  const run = await readRun(findProject(project), id);
  const chosen = format ?? formatOf(file);
  if (chosen === "tar" && file === undefined && process.stdout.isTTY)
    throw usageError("an archive is no text for a terminal", "--file run.tar.gz");
  // Whoever may not read the record may not read what is made of it (S-4).
  const out = file === undefined ? process.stdout : await openFile(file);
  if (chosen === "tar") await packInto(run, out);
  else out.write(await textOf(run, chosen));
  if (out !== process.stdout) {
    out.end();
    await finished(out);
  }
}

async function openFile(file: string): Promise<WriteStream> {
  const out = createWriteStream(file, { mode: 0o600 });
  try {
    await once(out, "open");
    return out;
  } catch (cause) {
    throw unwritten(file, cause);
  }
}

function formatOf(file: string | undefined): ExportFormat {
  if (file === undefined || file.endsWith(".ndjson")) return "ndjson";
  const known = {
    ".json": "json",
    ".txt": "text",
    ".md": "markdown",
    ".xml": "junit",
    ".html": "html",
    ".cast": "cast",
  } as const;
  const extension = /\.[a-z]+$/.exec(file)?.[0] ?? "";
  if (/\.(tar\.gz|tgz)$/.test(file)) return "tar";
  if (Object.hasOwn(known, extension)) return known[extension as keyof typeof known];
  throw usageError(`the name “${file}” does not tell a format`, `--format ${exportFormats.join("|")}`);
}

async function textOf(run: KnownRun, format: Exclude<ExportFormat, "tar">): Promise<string> {
  switch (format) {
    case "ndjson":
      return run.events.map(formatEvent).join("");
    case "json":
      return drawReport("json", run);
    case "junit":
      return drawReport("xml", run);
    case "html":
      return drawReport("html", run);
    case "markdown":
      return drawReport("md", run);
    case "text":
      return (await drawPlain(run)).map(({ text }) => text).join("");
    case "cast": {
      const { drawCast } = await import("#tui/asciicast.ts");
      return drawCast(run.model, await drawPlain(run));
    }
  }
}

/** What the plain view writes for each event, and when. */
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

/** The whole record as a gzipped archive, by tar(1). */
async function packInto({ folder }: KnownRun, out: NodeJS.WritableStream): Promise<void> {
  const words = ["-C", dirname(folder.path), "--exclude=socket", "--exclude=reserve", "-cz", basename(folder.path)];
  const read = (stdout: Readable): Promise<void> => pipeline(stdout, out, { end: false });
  const { code } = await run(["tar", ...words], { read, inherit: "stderr" });
  if (code !== 0) throw usageError(`tar ended with exit code ${code}`, "--format ndjson");
}
