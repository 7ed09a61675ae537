import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import {
  compares,
  copyIfThere,
  jobFolder,
  artifactsIn,
  type Ci,
  type CiEvent,
  type CiWorld,
  type Environment,
  type JobEnd,
} from "./ci-world.ts";
import { root } from "./pages.ts";

export interface GithubStep {
  readonly name?: string;
  readonly if?: string;
  readonly uses?: string;
  readonly with?: Readonly<Record<string, string>>;
  readonly run?: string;
  readonly env?: Environment;
}

export interface GithubJob {
  readonly needs?: string;
  readonly if?: string;
  readonly environment?: string;
  readonly steps: readonly GithubStep[];
  readonly [key: string]: unknown;
}

export interface Workflow {
  readonly env: Environment;
  readonly defaults: { readonly run: { readonly shell: string } };
  readonly jobs: Readonly<Record<string, GithubJob>>;
  readonly [key: string]: unknown;
}

export const workflowFile = "examples/ci/.github/workflows/kcore.yaml";

export function readWorkflow(): Workflow {
  return parse(readFileSync(join(root, workflowFile), "utf8")) as Workflow;
}

const events = { proposal: "pull_request", push: "push", schedule: "schedule" } as const;

/** The values of `github.…` in a job's `if`; a proposal may come from a fork. */
export function githubContext(event: CiEvent, { fork = false } = {}): Readonly<Record<string, string>> {
  return {
    "github.event_name": events[event],
    "github.repository": "us/site",
    ...(event === "proposal" && { "github.event.pull_request.head.repo.full_name": fork ? "them/site" : "us/site" }),
  };
}

/** Whether a job's condition holds: comparisons of names and texts, one of which must be true. */
export function holds(condition: string | undefined, context: Readonly<Record<string, string>>): boolean {
  const valueOf = (word = ""): string => /^'(.*)'$/.exec(word)?.[1] ?? context[word] ?? "";
  return (condition ?? "'' == ''").split(" || ").some((part) => compares(part, valueOf));
}

/** GitHub Actions by its documentation, as far as the example needs it; functions of this file stand for its own actions. */
export function githubCi(world: CiWorld, secrets: Environment): Ci {
  const workflow = readWorkflow();
  const pipeline: Ci["pipeline"] = async (event, commit) => {
    const ends = new Map<string, JobEnd>();
    const store = world.path("github", String(process.hrtime.bigint()));
    for (const [name, job] of Object.entries(workflow.jobs)) {
      if (!holds(job.if, githubContext(event)) || (job.needs !== undefined && ends.get(job.needs)?.code !== 0))
        continue;
      ends.set(name, await runJob(name, job, { event, commit, store }));
    }
    return ends;
  };

  const runJob = async (
    name: string,
    job: GithubJob,
    at: { event: CiEvent; commit: string; store: string },
  ): Promise<JobEnd> => {
    const { folder, home } = jobFolder(world, name, "work");
    const workspace = join(folder, "work");
    const files = { GITHUB_PATH: join(folder, "path"), GITHUB_STEP_SUMMARY: join(folder, "summary") };
    for (const file of Object.values(files)) writeFileSync(file, "");
    let [code, log] = [0, ""];
    const act = async ({ uses, with: given, run, env = {} }: GithubStep): Promise<number> => {
      if (uses !== undefined) return play(uses, given ?? {}, { ...at, workspace });
      const paths = readFileSync(files.GITHUB_PATH, "utf8").trim().split("\n").toReversed();
      const lines = paths.map((path) => (path === "" ? "" : `export PATH='${path}':"$PATH"\n`)).join("");
      const ended = await world.run(`${lines}${run}`, {
        cwd: workspace,
        flags: ["--noprofile", "--norc", "-eo", "pipefail"],
        env: {
          HOME: home,
          GITHUB_ACTIONS: "true",
          GITHUB_WORKSPACE: workspace,
          GITHUB_SHA: at.commit,
          GITHUB_EVENT_NAME: events[at.event],
          ...files,
          ...workflow.env,
          KCORE_REPOSITORY: `file://${world.path("package")}`,
          ...Object.fromEntries(Object.entries(env).map(([key, value]) => [key, fill(value, secrets)])),
        },
      });
      log += ended.output;
      return ended.code;
    };
    for (const step of job.steps) {
      if (code !== 0 && step.if !== "${{ !cancelled() }}") continue;
      const ended = await act(step);
      if (code === 0) code = ended;
    }
    // actions/cache saves at the job's end.
    copyIfThere(join(workspace, ".kcore/tool"), world.path("jobs/cache"));
    return {
      code,
      log,
      summary: readFileSync(files.GITHUB_STEP_SUMMARY, "utf8"),
      ...artifactsIn(join(at.store, name)),
    };
  };

  const play = (
    uses: string,
    given: Readonly<Record<string, string>>,
    { commit, store, workspace }: { commit: string; store: string; workspace: string },
  ): number => {
    const [path = "", artifact = ""] = [given["path"], given["name"]];
    switch (uses.split("@")[0]) {
      case "actions/checkout":
        world.checkOut(commit, workspace);
        return 0;
      case "actions/cache":
        copyIfThere(world.path("jobs/cache"), join(workspace, path));
        return 0;
      case "actions/upload-artifact":
        return copyIfThere(join(workspace, path), join(store, artifact, path)) ? 0 : 1;
      case "actions/download-artifact":
        return copyIfThere(join(store, artifact, path), join(workspace, path)) ? 0 : 1;
      default:
        throw new Error(`nobody plays ${uses} here`);
    }
  };
  return { name: "GitHub", pipeline, close: () => Promise.resolve() };
}

function fill(value: string, secrets: Environment): string {
  const name = /^\$\{\{ secrets\.(\w+) \}\}$/.exec(value)?.[1];
  if (name === undefined) throw new Error(`not understood here: ${value}`);
  return secrets[name] ?? "";
}
