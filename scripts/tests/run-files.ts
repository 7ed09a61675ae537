import Mocha from "mocha";
import { writeFileSync } from "node:fs";
import { enableCompileCache } from "node:module";
import { join, relative } from "node:path";
import { parseArgs } from "node:util";
import { cpuSeconds } from "#support/cpu.ts";
import { root } from "./suites.ts";

/*
 * The process of one job, `node run-files.ts --result FILE --timeout MS [--bail] TESTFILE…`: runs test files by mocha. It writes to FILE the
 * counts, seconds and CPU seconds of each test file, and the failures. SIGUSR2 ends the process: the running test fails at once, so that its
 * hooks clean up, and no other test begins.
 */

/** The contents of FILE. */
export interface FilesResult {
  readonly files: Readonly<Record<string, FileCounts>>;
  readonly failed: readonly { readonly file: string; readonly title: string; readonly message: string }[];
  /** CPU seconds of the process, and of the child processes that it waited for. */
  readonly cpu: number;
}

interface FileCounts {
  passed: number;
  failed: number;
  skipped: number;
  seconds: number;
  /** CPU seconds of the tests and hooks, without the loading of the file. */
  cpu: number;
}

// Jobs share the compiled code of the sources that they load. An environment variable would also affect the programs that tests start.
enableCompileCache(join(root, "node_modules/.cache/kcore-tests"));

const text = { type: "string" } as const;
const options = { result: text, timeout: text, bail: { type: "boolean", default: false } } as const;
const { values, positionals } = parseArgs({ options, allowPositionals: true });
const mocha = new Mocha({ reporter: "dot", timeout: Number(values.timeout ?? 20_000), bail: values.bail });
for (const file of positionals) mocha.addFile(file);
await mocha.loadFilesAsync();

const files: Record<string, FileCounts> = {};
const failed: { file: string; title: string; message: string }[] = [];
const nameOf = (of: { file?: string | undefined }): string => (of.file ? relative(root, of.file) : "(none)");
const countsOf = (of: { file?: string | undefined }): FileCounts =>
  (files[nameOf(of)] ??= { passed: 0, failed: 0, skipped: 0, seconds: 0, cpu: 0 });
const addTime = (of: { file?: string | undefined; duration?: number | undefined }): void => {
  countsOf(of).seconds += (of.duration ?? 0) / 1000;
};

const runner = mocha.run(() => {
  if (values.result)
    writeFileSync(values.result, JSON.stringify({ files, failed, cpu: cpuSeconds() } satisfies FilesResult));
  process.exit(failed.length > 0 ? 1 : 0);
});
let counted = cpuSeconds();
runner.on("suite end", (suite) => {
  if (suite.parent?.root !== true) return;
  const now = cpuSeconds();
  countsOf(suite).cpu += now - counted;
  counted = now;
});
runner.on("test end", addTime);
runner.on("hook end", addTime);
runner.on("pass", (test) => (countsOf(test).passed += 1));
runner.on("pending", (test) => (countsOf(test).skipped += 1));
runner.on("fail", (test, error: unknown) => {
  countsOf(test).failed += 1;
  const message = (error instanceof Error ? error.message : String(error)).slice(0, 500);
  failed.push({ file: nameOf(test), title: test.fullTitle(), message });
});

process.on("SIGUSR2", () => {
  const { currentRunnable } = runner as unknown as { currentRunnable?: Mocha.Runnable };
  runner.abort();
  if (currentRunnable instanceof Mocha.Test) currentRunnable.timeout(1);
});
