import { spawn } from "node:child_process";
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { FilesResult } from "./run-files.ts";
import { root, type Job } from "./suites.ts";

/** The result of a job that has ended, and its whole output. */
export interface JobResult extends FilesResult {
  readonly job: Job;
  readonly seconds: number;
  readonly output: string;
  /** Names of the jobs that ran for some time at the same time as this job. */
  readonly beside: readonly string[];
}

/** A running job. */
export interface Running {
  readonly job: Job;
  /** Names of the jobs that run at the same time; the caller adds to the set. */
  readonly beside: Set<string>;
  readonly ended: Promise<JobResult>;
  /** Asks the job to clean up and end; kills the job's processes after two minutes. */
  readonly end: () => void;
}

/** The milliseconds that a job has for its clean-up after `end`. */
const graceful = 120_000;

/** Starts a job in a process group of its own. When the job's process ends, the rest of the group is killed. */
export function startJob(job: Job): Running {
  const folder = mkdtempSync(join(tmpdir(), "kcore-job-"));
  const resultFile = join(folder, "result");
  const log = openSync(join(folder, "log"), "w");
  const started = performance.now();
  const child = spawn(process.execPath, argumentsOf(job, resultFile), {
    cwd: root,
    stdio: ["ignore", log, log],
    detached: true,
  });
  closeSync(log);
  const signal = (pid: number, name: NodeJS.Signals): void => {
    try {
      if (child.pid !== undefined) process.kill(pid, name);
    } catch {
      // The process has ended.
    }
  };
  const killGroup = (): void => signal(-(child.pid ?? 0), "SIGKILL");
  const beside = new Set<string>();
  const ended = new Promise<JobResult>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code, killedBy) => {
      killGroup();
      const seconds = (performance.now() - started) / 1000;
      const output = readFileSync(join(folder, "log"), "utf8");
      const result = readResult(resultFile) ?? broken(job, `ended by ${killedBy ?? code} without a result`);
      rmSync(folder, { recursive: true, force: true });
      resolve({ job, seconds, output, ...result, beside: [...beside] });
    });
  });
  const end = (): void => {
    // Only the job's own process gets the signal: SIGUSR2 would kill the programs that tests started before their clean-up.
    signal(child.pid ?? 0, job.check ? "SIGTERM" : "SIGUSR2");
    setTimeout(killGroup, graceful).unref();
  };
  return { job, beside, ended, end };
}

function argumentsOf(job: Job, result: string): string[] {
  const script = (name: string): string[] => ["--disable-warning=ExperimentalWarning", join(import.meta.dirname, name)];
  if (job.check) return [...script("run-check.ts"), result, job.check];
  return [...script("run-files.ts"), "--result", result, "--timeout", String(job.timeout), ...job.files];
}

function readResult(file: string): FilesResult | undefined {
  try {
    return JSON.parse(readFileSync(file, "utf8")) as FilesResult;
  } catch {
    return undefined;
  }
}

function broken({ name }: Job, message: string): FilesResult {
  const counts = { passed: 0, failed: 1, skipped: 0, seconds: 0, cpu: 0 };
  return { files: { [name]: counts }, failed: [{ file: name, title: name, message }], cpu: 0 };
}

/** A job of only the files that failed; the whole job after a failure that belongs to no file, such as a crash. */
export function failedPartOf({ job, failed }: JobResult): Job {
  const names = new Set(failed.map(({ file }) => file));
  const files = job.files.filter((file) => names.has(file));
  return files.length === names.size ? { ...job, files, name: files.join(", ") } : job;
}
