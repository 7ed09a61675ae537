import { createReadStream } from "node:fs";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { createInterface } from "node:readline";
import { createFile, ifThere } from "#base/file.ts";
import { run } from "#base/process.ts";
import { parseEvent } from "#engine/events/recording.ts";
import type { RunHeader } from "#engine/run/run-folder.ts";
import { exitCodes, KcoreError } from "#errors/problem.ts";
import { kcoreVersion } from "../process/version.ts";
import { findRuns } from "../records/run-summary.ts";
import { printJson } from "../terminal/print-json.ts";

/** The number of newest runs whose records go into a bundle. */
const mostRuns = 5;

interface Bundled {
  readonly project: string;
  readonly node?: string;
  readonly result: object;
}

/**
 * Writes the findings and the records of the newest runs as FILE.tar.gz, a new file for this user alone. The runs masked their secrets. The
 * command line and the parameters of each run are left out, since the operator may have typed a secret there.
 * @throws KcoreError REPORT_UNWRITABLE
 */
export async function writeBundle(file: string, { project, node, result }: Bundled): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "kcore-doctor-"));
  const name = basename(file).replace(/\.(?:tar\.gz|tgz)$/, "") || "doctor";
  const inside = join(folder, name);
  try {
    await mkdir(join(inside, "runs"), { recursive: true, mode: 0o700 });
    await writeFile(join(inside, "doctor.json"), `${printJson({ version: kcoreVersion(), ...result }, 2)}\n`);
    const runs = await findRuns(project, { limit: mostRuns, ...(node !== undefined && { node: [node] }) });
    // The whole record of a single command consists of typed words.
    for (const { folder: record, header } of runs.filter(({ header: { request } }) => request.what.kind !== "exec")) {
      const place = (of: string): string => join(inside, "runs", `${record.id}-${basename(of)}`);
      await writeFile(place(record.header), `${printJson(withoutTyped(header), 2)}\n`);
      await ifThere(writeFile(place(record.events), eventsWithoutTyped(record.events, header.request.command)));
    }
    const packed = join(folder, "packed");
    const { code, stderr } = await run(["tar", "-C", folder, "-czf", packed, name]);
    if (code !== 0) throw unwritable(file, stderr.trim());
    await createFile(file, createReadStream(packed)).catch((cause: Error) => {
      throw unwritable(file, cause.message);
    });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function withoutTyped(header: RunHeader): object {
  const { params: _params, command: _command, ...request } = header.request;
  return { ...header, request };
}

/** The lines of a record without the run's command, which a hint may repeat. A run's secrets are masked in its event, and not in `command`. */
async function* eventsWithoutTyped(file: string, command: string): AsyncGenerator<string> {
  const typed = new Set([command]);
  for await (const line of createInterface({ input: createReadStream(file), crlfDelay: Infinity })) {
    const event = line.includes('"type":"run.started"') ? parseEvent(line) : undefined;
    if (event?.type === "run.started") typed.add(event.command);
    let left = line;
    for (const one of typed) if (one !== "") left = left.replaceAll(JSON.stringify(one).slice(1, -1), "");
    yield `${left}\n`;
  }
}

function unwritable(file: string, why: string): KcoreError {
  const message = `the bundle “${file}” could not be written: ${why}`;
  return new KcoreError(
    { code: "REPORT_UNWRITABLE", message, hint: "--bundle doctor.tar.gz" },
    { exitCode: exitCodes.failed },
  );
}
