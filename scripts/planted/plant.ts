import { spawn } from "node:child_process";
import { cp, mkdtemp, readFile, realpath, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { applyEdit } from "../../test/sim/plant.ts";
import type { FilesResult } from "../tests/run-files.ts";
import { whyNot } from "./faults.ts";
import type { Fault } from "./faults.ts";

/** “red before”: a named test fails without the fault, so its failure would prove nothing. */
export type Outcome = "found" | "not found" | "does not apply" | "red before";

export interface Planted {
  readonly outcome: Outcome;
  /** The test that failed, the number of tests that passed, the exceeded time limit, or the reason why the fault could not be planted. */
  readonly said: string;
  /** CPU seconds of the tests; after the time limit, the limit itself. */
  readonly cpu: number;
}

interface Tested {
  readonly isGreen: boolean;
  readonly said: string;
  readonly cpu: number;
}

const notCopied: ReadonlySet<string> = new Set(["node_modules", ".git", "dist", ".kcore"]);
const limitMs = 120_000;

/** A throw-away copy of the tree, in which faults are planted one after the other: the tree itself is never changed. */
export class Copy {
  readonly #root: string;
  readonly #green: Map<string, Promise<Tested>>;
  #child: number | undefined;

  private constructor(root: string, green: Map<string, Promise<Tested>>) {
    this.#root = root;
    this.#green = green;
  }

  /** `green`: the results of tests without a fault, by test files; copies that share the map run each set of files once. */
  static async make(tree: string, green: Map<string, Promise<Tested>> = new Map()): Promise<Copy> {
    const root = await realpath(await mkdtemp(join(tmpdir(), "kcore-planted-")));
    await cp(tree, root, { recursive: true, filter: (path) => path === tree || !notCopied.has(basename(path)) });
    await symlink(await realpath(join(tree, "node_modules")), join(root, "node_modules"));
    return new Copy(root, green);
  }

  async plant(fault: Fault): Promise<Planted> {
    const reason = whyNot(fault, this.#root);
    if (reason !== undefined) return { outcome: "does not apply", said: reason, cpu: 0 };
    const path = join(this.#root, "src", fault.file);
    const source = await readFile(path, "utf8");
    try {
      const before = await this.#isGreenWithout(fault.tests);
      if (!before.isGreen) return { ...before, outcome: "red before" };
      await writeFile(path, applyEdit(source, fault));
      const { isGreen, ...tested } = await this.#test(fault.tests);
      return { ...tested, outcome: isGreen ? "not found" : "found" };
    } catch (error) {
      return { outcome: "does not apply", said: (error as Error).message, cpu: 0 };
    } finally {
      await writeFile(path, source);
    }
  }

  #isGreenWithout(tests: readonly string[]): Promise<Tested> {
    const key = tests.join(" ");
    const known = this.#green.get(key) ?? this.#test(tests);
    this.#green.set(key, known);
    return known;
  }

  /** @throws Error when the tests do not load: a fault that breaks the syntax or an import proves nothing about the tests */
  #test(tests: readonly string[]): Promise<Tested> {
    const report = join(this.#root, "planted.json");
    const script = join(import.meta.dirname, "../tests/run-files.ts");
    const options = [
      "--disable-warning=ExperimentalWarning",
      script,
      "--bail",
      "--timeout",
      "60000",
      "--result",
      report,
    ];
    const child = spawn(process.execPath, [...options, ...tests], {
      cwd: this.#root,
      env: { ...process.env, KCORE_SOURCE: "1", NODE_COMPILE_CACHE: join(this.#root, ".compiled") },
      stdio: ["ignore", "ignore", "pipe"],
      detached: true,
    });
    this.#child = child.pid;
    let said = "";
    child.stderr.setEncoding("utf8").on("data", (text: string) => (said += text));
    return new Promise((resolve, reject) => {
      let isLate = false;
      const timer = setTimeout(() => {
        isLate = true;
        this.#stop();
      }, limitMs);
      child.on("error", reject).on("close", () => {
        clearTimeout(timer);
        this.#child = undefined;
        if (isLate) resolve({ isGreen: false, said: `not done within ${limitMs / 1000} s`, cpu: limitMs / 1000 });
        else this.#read(report, said).then(resolve, reject);
      });
    });
  }

  async #read(report: string, stderr: string): Promise<Tested> {
    const text = await readFile(report, "utf8").catch(() => undefined);
    await rm(report, { force: true });
    if (text === undefined)
      throw new Error(`the tests do not load: ${stderr.trim().split("\n").slice(0, 6).join(" ")}`);
    const { files, failed, cpu } = JSON.parse(text) as FilesResult;
    const passed = Object.values(files).reduce((sum, counts) => sum + counts.passed, 0);
    return { isGreen: passed > 0 && failed.length === 0, said: failed[0]?.title ?? `${passed} passed`, cpu };
  }

  #stop(): void {
    if (this.#child !== undefined) process.kill(-this.#child, "SIGKILL");
  }

  remove(): Promise<void> {
    this.#stop();
    return rm(this.#root, { recursive: true, force: true, maxRetries: 10 });
  }
}
