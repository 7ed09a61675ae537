import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { cpuSeconds } from "#support/cpu.ts";
import type { FilesResult } from "./run-files.ts";

/** The process of one check, `node run-check.ts FILE SCRIPT`: runs the npm script, and writes its result to FILE in the form of run-files.ts. */
const [result = "", script = ""] = process.argv.slice(2);
const { status } = spawnSync("npm", ["run", "--silent", script], { stdio: "inherit" });
const name = `check ${script}`;
const files = {
  [name]: { passed: status === 0 ? 1 : 0, failed: status === 0 ? 0 : 1, skipped: 0, seconds: 0, cpu: 0 },
};
const failed = status === 0 ? [] : [{ file: name, title: name, message: `ended with ${status}` }];
writeFileSync(result, JSON.stringify({ files, failed, cpu: cpuSeconds() } satisfies FilesResult));
process.exit(status ?? 1);
