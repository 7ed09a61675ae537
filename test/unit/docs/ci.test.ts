import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { githubContext, holds, readWorkflow, workflowFile } from "#support/github-jobs.ts";
import { gitlabVariables, pipelineFile, readPipeline, ruleFor } from "#support/gitlab-jobs.ts";
import { readPages, root } from "#support/pages.ts";

const page = readPages().find(({ name }) => name === "docs/ci.md");
const example = (name: string): string => readFileSync(join(root, "examples/ci", name), "utf8");

/** The keys of a job and of a step (docs.github.com, “Workflow syntax for GitHub Actions”), as far as the example uses them. */
const jobKeys = ["needs", "if", "runs-on", "timeout-minutes", "environment", "concurrency", "steps"];
const stepKeys = ["name", "if", "uses", "with", "run", "env"];
/** docs.gitlab.com, “CI/CD YAML syntax reference”. */
const gitlabKeys = "stage timeout needs rules environment resource_group script after_script artifacts".split(" ");
const unknownIn = (value: object, known: readonly string[]): readonly string[] =>
  Object.keys(value).filter((key) => !known.includes(key));

describe("docs/ci.md", () => {
  it("shows the files of examples/ci, whole", () => {
    const shown = page?.blocks.map(({ text }) => text) ?? [];
    for (const name of [".github/workflows/kcore.yaml", ".gitlab-ci.yml", "ci/setup.sh", "ci/note.sh", ".gitignore"])
      expect(shown, name).to.include(example(name));
    expect(statSync(join(root, workflowFile)).isFile() && statSync(join(root, pipelineFile)).isFile()).to.equal(true);
  });
});

describe("the workflow for GitHub Actions", () => {
  const workflow = readWorkflow();
  const jobs = Object.entries(workflow.jobs);

  it("has only keys that GitHub knows, jobs that end, and needs that are jobs", () => {
    expect(unknownIn(workflow, ["name", "on", "permissions", "env", "defaults", "jobs"])).to.deep.equal([]);
    for (const [name, job] of jobs) {
      expect(unknownIn(job, jobKeys), name).to.deep.equal([]);
      expect(job["timeout-minutes"], name).to.be.a("number");
      if (job.needs !== undefined) expect(Object.keys(workflow.jobs)).to.include(job.needs);
      for (const step of job.steps) {
        expect(unknownIn(step, stepKeys), name).to.deep.equal([]);
        expect("run" in step, name).not.to.equal("uses" in step);
        if (step.uses !== undefined) expect(step.uses).to.match(/^actions\/[\w-]+@v\d+$/);
      }
    }
  });

  it("may write nothing, lets no expression into a command, and gives secrets to one step only", () => {
    expect(workflow["permissions"]).to.deep.equal({ contents: "read" });
    for (const [name, { steps }] of jobs)
      for (const step of steps) {
        expect(step.run ?? "", name).not.to.contain("${{");
        if (Object.values(step.env ?? {}).length > 0) expect(step.run).to.equal("sh ci/setup.sh");
      }
  });

  it("runs for each event what it should, and gives a fork no keys", () => {
    const begun = (...given: Parameters<typeof githubContext>): readonly string[] =>
      jobs.filter(([, job]) => holds(job.if, githubContext(...given))).map(([name]) => name);
    expect([begun("proposal"), begun("proposal", { fork: true })]).to.deep.equal([["check", "plan"], ["check"]]);
    expect([begun("push"), begun("schedule")]).to.deep.equal([["check", "plan", "deploy"], ["drift"]]);
    const keyed = jobs.filter(([, { steps }]) => steps.some(({ env }) => env)).map(([, job]) => job.environment);
    expect(keyed).to.deep.equal(["plan", "production", "plan"]);
  });

  it("deploys one commit at a time", () =>
    expect(workflow.jobs["deploy"]?.["concurrency"]).to.deep.equal({
      group: "kcore-production",
      "cancel-in-progress": false,
    }));
});

describe("the pipeline for GitLab", () => {
  const { workflow, stages, jobs } = readPipeline();

  it("has only keys that GitLab knows, jobs that end, and stages and needs that are there", () => {
    for (const [name, job] of Object.entries(jobs)) {
      expect(unknownIn(job, gitlabKeys), name).to.deep.equal([]);
      expect(job["timeout"], name).to.match(/^\d+ (minutes|hours)$/);
      expect(stages).to.include(job.stage);
      for (const needed of job.needs ?? []) expect(Object.keys(jobs)).to.include(needed);
      expect(unknownIn(job.artifacts, ["when", "paths", "expose_as", "reports"])).to.deep.equal([]);
    }
  });

  it("runs for each event what it should, the deployment when somebody says so", () => {
    const begun = (event: Parameters<typeof gitlabVariables>[0]): readonly string[] =>
      ruleFor(workflow.rules, gitlabVariables(event)) === undefined
        ? []
        : Object.entries(jobs)
            .filter(([, { rules }]) => ruleFor(rules, gitlabVariables(event)))
            .map(([name]) => name);
    expect(begun("proposal")).to.deep.equal(["check", "plan"]);
    expect([begun("push"), begun("schedule")]).to.deep.equal([["check", "plan", "deploy"], ["drift"]]);
    expect(jobs["deploy"]).to.include({ resource_group: "production" });
    expect(jobs["deploy"]?.rules[0]?.when).to.equal("manual");
  });
});
