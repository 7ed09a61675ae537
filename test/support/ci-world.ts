import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import {
  appendFileSync,
  chmodSync,
  cpSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { root } from "./pages.ts";
import { makeTempDir, type TempDir } from "./temp-dir.ts";

/** The event that starts a pipeline. */
export type CiEvent = "proposal" | "push" | "schedule";

/** The end of a job, with its artifacts. */
export interface JobEnd {
  /** Exit code of the first failed step; 0 if none failed. */
  readonly code: number;
  /** The output of all steps. */
  readonly log: string;
  /** The job's summary (GitHub), or its notes on the merge request (GitLab). */
  readonly summary: string;
  /** The text of an artifact, by its path in the project. */
  readonly artifact: (path: string) => string;
  readonly artifacts: readonly string[];
}

/** A simulated CI, which runs its pipeline of `examples/ci` for an event at a commit, job by job, until one fails. */
export interface Ci {
  readonly name: "GitHub" | "GitLab";
  pipeline(event: CiEvent, commit: string): Promise<ReadonlyMap<string, JobEnd>>;
  close(): Promise<void>;
}

/**
 * The world of a CI in one folder: the project's repository, kcore's own with a tag, and an npm that links this checkout's node_modules,
 * since a test downloads nothing.
 */
export class CiWorld {
  readonly #folder: TempDir;

  private constructor(folder: TempDir) {
    this.#folder = folder;
  }

  static async make(): Promise<CiWorld> {
    const world = new CiWorld(await makeTempDir("ci"));
    world.#makeRelease();
    cpSync(join(root, "examples/ci"), world.origin, { recursive: true });
    world.#git(world.origin, "init", "--quiet", "--initial-branch", "main");
    mkdirSync(world.path("bin"));
    const npm = `#!/bin/sh\n[ "$1" = ci ] || exit 9\necho "$PWD" >>'${world.path("npm")}'\nln -s '${root}/node_modules' .\n`;
    writeFileSync(world.path("bin/npm"), npm, { mode: 0o755 });
    return world;
  }

  path(...names: readonly string[]): string {
    return join(this.#folder.path, ...names);
  }

  get origin(): string {
    return this.path("origin");
  }

  /** The number of installations of packages. */
  get installs(): number {
    return readFileSync(this.path("npm"), "utf8").trim().split("\n").length;
  }

  /** Makes a repository of a release like a clone of its tag, without the sources. */
  #makeRelease(): void {
    const words = ["pack", "--silent", "--ignore-scripts", "--pack-destination", this.#folder.path];
    const name = execFileSync("npm", words, { cwd: root, encoding: "utf8" }).trim();
    execFileSync("tar", ["-xzf", this.path(name), "-C", this.#folder.path]);
    const release = this.path("package");
    this.#git(release, "init", "--quiet");
    this.#commit(release, "a release");
    this.#git(release, "tag", "v0.1.0");
  }

  /** Writes files of the project, commits all of them, and returns the commit. */
  commit(files: Readonly<Record<string, string>>): string {
    for (const [name, text] of Object.entries(files)) {
      mkdirSync(dirname(join(this.origin, name)), { recursive: true });
      writeFileSync(join(this.origin, name), text);
    }
    return this.#commit(this.origin, "a change");
  }

  #commit(folder: string, message: string): string {
    this.#git(folder, "add", "--all", "--force");
    this.#git(folder, "commit", "--quiet", "--allow-empty", "--message", message);
    return this.#git(folder, "rev-parse", "HEAD").trim();
  }

  #git(folder: string, ...words: readonly string[]): string {
    const who = ["-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false"];
    return execFileSync("git", [...who, "-C", folder, ...words], { encoding: "utf8" });
  }

  /** Checks the commit out into a job's own folder. */
  checkOut(commit: string, workspace: string): void {
    this.#git(this.origin, "clone", "--quiet", "--no-hardlinks", this.origin, workspace);
    this.#git(workspace, "checkout", "--quiet", "--detach", commit);
  }

  /** Runs a script by bash as a CI does, with only the given environment and the variables of every job. */
  async run(script: string, { cwd, env, flags }: { cwd: string; env: Environment; flags: readonly string[] }) {
    const file = join(cwd, "../script.sh");
    writeFileSync(file, script);
    const child = spawn("bash", [...flags, file], {
      cwd,
      stdio: ["ignore", "pipe", "pipe"],
      env: { PATH: `${this.path("bin")}:/usr/sbin:/usr/bin:/sbin:/bin`, CI: "true", LANG: "C.UTF-8", ...env },
    });
    let output = "";
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding("utf8").on("data", (text: string) => (output += text));
    const [code] = (await once(child, "close")) as [number | null];
    return { code: code ?? 255, output };
  }

  async remove(): Promise<void> {
    await this.#folder.remove();
  }
}

export type Environment = Readonly<Record<string, string>>;

/** Copies a file or folder; false if it does not exist. */
export function copyIfThere(from: string, to: string): boolean {
  try {
    rmSync(to, { recursive: true, force: true });
    cpSync(from, to, { recursive: true, verbatimSymlinks: true });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return false;
    throw error;
  }
}

/** The artifacts of a job, read from a folder. */
export function artifactsIn(folder: string): Pick<JobEnd, "artifact" | "artifacts"> {
  mkdirSync(folder, { recursive: true });
  return {
    artifact: (path) => readFileSync(join(folder, path), "utf8"),
    artifacts: readdirSync(folder, { recursive: true, encoding: "utf8" }).toSorted(),
  };
}

/** A folder for one job, with a home. */
export function jobFolder(world: CiWorld, name: string, workspace: string): { folder: string; home: string } {
  const folder = world.path("jobs", `${name}-${process.hrtime.bigint()}`);
  const home = join(folder, "home");
  mkdirSync(home, { recursive: true, mode: 0o700 });
  mkdirSync(dirname(join(folder, workspace)), { recursive: true });
  chmodSync(folder, 0o755);
  appendFileSync(join(folder, "summary"), "");
  return { folder, home };
}

/** Whether a comparison with == or != holds, which both CIs write alike. @throws Error for anything else */
export function compares(comparison: string, valueOf: (word: string | undefined) => string | undefined): boolean {
  const [left, operator, right, ...more] = comparison.split(" ");
  if (more.length > 0 || !["==", "!="].includes(operator ?? "")) throw new Error(`not understood here: ${comparison}`);
  return (valueOf(left) === valueOf(right)) === (operator === "==");
}
