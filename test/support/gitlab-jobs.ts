import { chmodSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
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

interface Rule {
  readonly if: string;
  readonly when?: string;
}

export interface GitlabJob {
  readonly stage: string;
  readonly needs?: readonly string[];
  readonly rules: readonly Rule[];
  readonly script: readonly string[];
  readonly after_script?: readonly string[];
  readonly artifacts: {
    readonly when: string;
    readonly paths?: readonly string[];
    readonly reports: Readonly<Record<string, string>>;
  };
  readonly [key: string]: unknown;
}

export interface Pipeline {
  readonly workflow: { readonly rules: readonly Rule[] };
  readonly stages: readonly string[];
  readonly variables: Environment;
  readonly default: {
    readonly before_script: readonly string[];
    readonly cache: { readonly paths: readonly string[] };
  };
  readonly jobs: Readonly<Record<string, GitlabJob>>;
}

export const pipelineFile = "examples/ci/.gitlab-ci.yml";

/** Reads the pipeline: its keys without another meaning are jobs. */
export function readPipeline(): Pipeline {
  const {
    workflow,
    stages,
    variables,
    default: usual,
    ...jobs
  } = parse(readFileSync(join(root, pipelineFile), "utf8")) as Omit<Pipeline, "jobs"> & Pipeline["jobs"];
  return { workflow, stages, variables, default: usual, jobs } as Pipeline;
}

const sources = { proposal: "merge_request_event", push: "push", schedule: "schedule" } as const;

/** The variables that GitLab sets; only a branch's own pipelines have its name. */
export function gitlabVariables(event: CiEvent): Environment {
  return {
    CI_PIPELINE_SOURCE: sources[event],
    CI_DEFAULT_BRANCH: "main",
    ...(event === "proposal" ? { CI_MERGE_REQUEST_IID: "7" } : { CI_COMMIT_BRANCH: "main" }),
  };
}

/** The first rule that holds: comparisons of variables and texts, all of which must be true. */
export function ruleFor(rules: readonly Rule[], variables: Environment): Rule | undefined {
  const valueOf = (word = ""): string | undefined => /^"(.*)"$/.exec(word)?.[1] ?? variables[word.slice(1)];
  return rules.find(({ if: condition }) => condition.split(" && ").every((part) => compares(part, valueOf)));
}

/** GitLab CI with a runner in a container, by its documentation, as far as the example needs it. */
export async function gitlabCi(world: CiWorld, secrets: Environment): Promise<Ci> {
  const { workflow, stages, variables, default: usual, jobs } = readPipeline();
  const notes = await noteServer();
  const pipeline: Ci["pipeline"] = async (event, commit) => {
    const ends = new Map<string, JobEnd>();
    const store = world.path("gitlab", String(process.hrtime.bigint()));
    if (!ruleFor(workflow.rules, gitlabVariables(event))) return ends;
    for (const stage of stages)
      for (const [name, job] of Object.entries(jobs).filter(([, job]) => job.stage === stage)) {
        const rule = ruleFor(job.rules, gitlabVariables(event));
        if (!rule || [...ends.values()].some(({ code }) => code !== 0)) continue;
        ends.set(name, await runJob(name, job, { event, commit, store }));
      }
    return ends;
  };

  const runJob = async (
    name: string,
    job: GitlabJob,
    at: { event: CiEvent; commit: string; store: string },
  ): Promise<JobEnd> => {
    const { folder, home } = jobFolder(world, name, "builds/us/site");
    const workspace = join(folder, "builds/us/site");
    // GitLab's helper works without a umask, so that every user of the container may write the checkout.
    const umask = process.umask(0);
    world.checkOut(at.commit, workspace);
    process.umask(umask);
    for (const path of ["builds", "builds/us"]) chmodSync(join(folder, path), 0o777);
    const [cached = ""] = usual.cache.paths;
    copyIfThere(world.path("jobs/cache"), join(workspace, cached));
    for (const needed of job.needs ?? []) copyIfThere(join(at.store, needed, "report"), join(workspace, "report"));
    const env = {
      HOME: home,
      GITLAB_CI: "true",
      CI_PROJECT_DIR: workspace,
      CI_PROJECT_ID: "42",
      CI_COMMIT_SHA: at.commit,
      CI_API_V4_URL: notes.url,
      ...gitlabVariables(at.event),
      ...variables,
      KCORE_REPOSITORY: `file://${world.path("package")}`,
      ...writeSecretFiles(folder, secrets),
      KCORE_NOTES_TOKEN: notes.token,
    };
    const shell = (lines: readonly string[]) =>
      world.run(`${lines.join("\n")}\n`, { cwd: workspace, env, flags: ["-eo", "pipefail"] });
    notes.bodies.length = 0;
    const { code, output } = await shell([...usual.before_script, ...job.script]);
    const after = await shell(job.after_script ?? []);
    copyIfThere(join(workspace, cached), world.path("jobs/cache"));
    const { paths = [], reports } = job.artifacts;
    for (const path of [...paths, ...Object.values(reports)])
      copyIfThere(join(workspace, path), join(at.store, name, path));
    const [log, summary] = [`${output}${after.output}`, notes.bodies.join("\n")];
    return { code, log, summary, ...artifactsIn(join(at.store, name)) };
  };
  return { name: "GitLab", pipeline, close: notes.close };
}

/** Variables of the type File: each is the path of a file that every user of the container may read. */
function writeSecretFiles(folder: string, secrets: Environment): Environment {
  mkdirSync(join(folder, "tmp"));
  return Object.fromEntries(
    Object.entries(secrets).map(([name, text]) => {
      const file = join(folder, "tmp", name);
      writeFileSync(file, text, { mode: 0o666 });
      return [name, file];
    }),
  );
}

/** GitLab's API for notes of a merge request, which accepts one token. */
async function noteServer() {
  const token = "glpat-of-the-test";
  const bodies: string[] = [];
  const server = createServer((request, response) => {
    void readBody(request).then((text) => {
      const isNote = request.method === "POST" && request.url === "/api/v4/projects/42/merge_requests/7/notes";
      const isKnown = request.headers["private-token"] === token;
      if (isNote && isKnown) bodies.push(new URLSearchParams(text).get("body") ?? "");
      response.writeHead(isNote ? (isKnown ? 201 : 401) : 404).end("{}");
    });
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const close = async (): Promise<void> => {
    server.close();
    await once(server, "close");
  };
  return { url: `http://127.0.0.1:${port}/api/v4`, token, bodies, close };
}

async function readBody(request: IncomingMessage): Promise<string> {
  let text = "";
  for await (const chunk of request.setEncoding("utf8")) text += String(chunk);
  return text;
}
