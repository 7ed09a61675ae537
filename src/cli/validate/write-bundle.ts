import { cp, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join, resolve } from "node:path";
import { run } from "#base/process.ts";
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
 * Writes the findings and the records of the newest runs as FILE.tar.gz. Records hold no secrets: each run masks them
 * before it writes, and so did the run of these checks. @throws KcoreError REPORT_UNWRITABLE
 */
export async function writeBundle(file: string, { project, node, result }: Bundled): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "kcore-doctor-"));
  const name = basename(file).replace(/\.(?:tar\.gz|tgz)$/, "") || "doctor";
  const inside = join(folder, name);
  try {
    await mkdir(join(inside, "runs"), { recursive: true, mode: 0o700 });
    await writeFile(join(inside, "doctor.json"), `${printJson({ version: kcoreVersion(), ...result }, 2)}\n`);
    for (const { folder: record } of await findRuns(project, {
      limit: mostRuns,
      ...(node !== undefined && { node: [node] }),
    }))
      for (const one of [record.header, record.events])
        await cp(one, join(inside, "runs", `${record.id}-${basename(one)}`)).catch(() => undefined);
    const { code, stderr } = await run(["tar", "-C", folder, "-czf", resolve(file), name]);
    if (code !== 0) throw unwritable(file, stderr.trim());
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function unwritable(file: string, why: string): KcoreError {
  const message = `the bundle “${file}” could not be written: ${why}`;
  return new KcoreError(
    { code: "REPORT_UNWRITABLE", message, hint: "--bundle doctor.tar.gz" },
    { exitCode: exitCodes.failed },
  );
}
