import { globSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";

export const root = join(import.meta.dirname, "../..");

/** The load of a job: `processor` computes, `waiting` mostly waits, `machine` emulates a machine. */
export type JobClass = "processor" | "waiting" | "machine";

/** One process of the run: some test files of a suite, or one check. */
export interface Job {
  readonly name: string;
  readonly suite: string;
  readonly class: JobClass;
  /** Test files below the root; none for a check. */
  readonly files: readonly string[];
  /** The npm script of a check. */
  readonly check?: string;
  /** The time limit of each test and hook against hangs, in ms; a test's own limit overrides this one. */
  readonly timeout: number;
  /** The seconds that the job took in the last recorded run; an estimate for files and checks without a record. */
  readonly known: number;
}

interface Suite {
  readonly files: readonly string[];
  readonly except?: RegExp;
  readonly class: JobClass;
  readonly timeout: number;
  /** The maximum sum of seconds of test files that share a process, which loads the sources once; absent: each file has its own. */
  readonly groupSeconds?: number;
  /** The suite's machines need root. */
  readonly root?: true;
}

const minutes = 60_000;

export const suites: Readonly<Record<string, Suite>> = {
  unit: { files: ["test/unit/**/*.test.ts"], class: "processor", timeout: 10 * minutes, groupSeconds: 12 },
  sim: { files: ["test/sim/**/*.test.ts"], class: "processor", timeout: 10 * minutes },
  integration: { files: ["test/integration/**/*.test.ts"], class: "waiting", timeout: 10 * minutes, groupSeconds: 6 },
  smoke: { files: ["test/lab/lab.test.ts"], class: "waiting", timeout: 15 * minutes, root: true },
  lab: {
    files: ["test/lab/**/*.test.ts"],
    except: /\/(lab|vm[^/]*)\.test\.ts$/,
    class: "waiting",
    timeout: 15 * minutes,
    root: true,
  },
  vm: { files: ["test/lab/vm*.test.ts"], class: "machine", timeout: 30 * minutes, root: true },
};

export const checks = ["format", "lint", "types", "layers", "dead", "shell", "words", "advisories"];

/** By test file or check, from the last recorded run in which it took 1.5 s or more (`times.json`): seconds and CPU seconds. */
export type Times = Readonly<Record<string, readonly [seconds: number, cpu: number]>>;

export const timesFile = join(import.meta.dirname, "times.json");

export function readTimes(): Times {
  return JSON.parse(readFileSync(timesFile, "utf8")) as Times;
}

/** The estimated seconds of a test file without an entry in `times.json`. */
const secondsIfUnrecorded = 1;

/** The jobs of these suites, and of `checks`. `wanted`: only these test files. */
export function jobsOf(names: readonly string[], times: Times, wanted?: ReadonlySet<string>): Job[] {
  return names.flatMap((name) => {
    if (name === "checks") return checks.map((check) => checkJob(check, times));
    const suite = suites[name];
    if (!suite) throw new Error(`no suite “${name}”; there are ${[...Object.keys(suites), "checks"].join(", ")}`);
    const files = globSync([...suite.files], { cwd: root })
      .filter((file) => !suite.except?.test(file) && (wanted?.has(file) ?? true))
      .toSorted();
    return groupFiles(files, suite.groupSeconds ?? 0, times).map((group) => ({
      name: group.length === 1 ? (group[0] as string) : `${group.length} files of ${name}, from ${group[0]}`,
      suite: name,
      class: suite.class,
      files: group,
      timeout: suite.timeout,
      known: group.reduce((sum, file) => sum + secondsOf(file, times), 0),
    }));
  });
}

function checkJob(check: string, times: Times): Job {
  const known = times[`check ${check}`]?.[0] ?? 10;
  return { name: `check ${check}`, suite: "checks", class: "processor", files: [], check, timeout: 0, known };
}

function secondsOf(file: string, times: Times): number {
  return times[file]?.[0] ?? secondsIfUnrecorded;
}

/** Groups neighbouring files whose sum of seconds is at most `seconds`; a file that takes longer is a group of its own. */
function groupFiles(files: readonly string[], seconds: number, times: Times): string[][] {
  const groups: string[][] = [];
  let group: string[] = [];
  let sum = 0;
  for (const file of files) {
    const known = secondsOf(file, times);
    if (known >= seconds) {
      groups.push([file]);
      continue;
    }
    if (sum + known > seconds && group.length > 0) {
      groups.push(group);
      [group, sum] = [[], 0];
    }
    group.push(file);
    sum += known;
  }
  if (group.length > 0) groups.push(group);
  return groups;
}

/** The suite that a test file belongs to. */
export function suiteOf(file: string): string {
  if (file.startsWith("test/lab/")) {
    const name = basename(file);
    return name === "lab.test.ts" ? "smoke" : name.startsWith("vm") ? "vm" : "lab";
  }
  return file.split("/")[1] ?? "";
}
