import { expect } from "chai";
import { projectHooks } from "#cli/project/project-settings.ts";
import { inProject } from "#support/in-project.ts";
import { problemsIn } from "#support/problems.ts";

const hooksIn = (text: string) => inProject({ "kcore.yaml": text }, (project) => projectHooks(project));
const kindsIn = (text: string): readonly string[] => hooksIn(text).map((hook) => `${hook.for} ${hook.kind}`);

describe("kcore.yaml", () => {
  it("tells all its problems at once, each at its place", () => {
    const text = "cluster: Prod!\nruns: { requireSigend: true }\nreconcile: { run: {} }\ndrain: {}\ndrian: {}\n";
    const found = problemsIn(() => hooksIn(text));
    expect(found.map((problem) => /^kcore\.yaml:(\d+):\d+/.exec(problem)?.[1]).join(" ")).to.equal("1 2 3 4 5");
    expect(found[1]).to.contain("requireSigned");
  });
});

describe("the hooks of kcore.yaml", () => {
  it("are none without a drain, and the file's other keys are not theirs", () => {
    expect(inProject({}, (project) => projectHooks(project))).to.deep.equal([]);
    expect(hooksIn("cluster: lab\n")).to.deep.equal([]);
    expect(hooksIn("")).to.deep.equal([]);
  });

  it("are states or commands, each with its limit", () => {
    const [drain, ...others] = hooksIn(`drain:
  state: emptied
  params: { word: gone }
  timeoutSeconds: 60
  after: { command: ./back }
  cordon: { command: ./close }
  storage: { command: ./storage }
  leave: { state: etcd-left }
`);
    expect(drain).to.deep.equal({
      for: "drain",
      kind: "state",
      state: "emptied",
      params: { word: "gone" },
      command: "",
      kubeconfig: "",
      deleteEmptyDirData: false,
      force: false,
      limitSeconds: 60,
    });
    expect(
      others.map((hook) => `${hook.for} ${hook.kind} ${hook.state}${hook.command} ${hook.limitSeconds}`),
    ).to.deep.equal([
      "undrain command ./back 60",
      "cordon command ./close 60",
      "storage command ./storage 60",
      "leave state etcd-left 60",
    ]);
  });

  it("are all four changes by Kubernetes and the leave, and after a failed drain if asked", () => {
    const four = ["drain kubernetes", "undrain kubernetes", "cordon kubernetes", "uncordon kubernetes"];
    expect(kindsIn("drain: { kubernetes: { kubeconfig: /k } }\n")).to.deep.equal([...four, "leave kubernetes"]);
    const back = "drain: { kubernetes: { kubeconfig: /k }, onFailure: uncordon, after: { command: ./x } }\n";
    expect(kindsIn(back)).to.deep.equal([
      "drain kubernetes",
      "undrain command",
      "cordon kubernetes",
      "uncordon kubernetes",
      "failedDrain kubernetes",
      "leave kubernetes",
    ]);
  });

  it("are leave alone, where no work has to move", () => {
    expect(kindsIn("drain: { leave: { state: etcd/left } }\n")).to.deep.equal(["leave state"]);
  });

  it("name exactly one way, at its place", () => {
    for (const [text, problem] of [
      ["drain: { timeoutSeconds: 3 }\n", "needs one of state, command and kubernetes"],
      ["drain: { state: a, command: b }\n", "needs one of state, command and kubernetes"],
      ["drain: { command: a, after: {} }\n", "needs either state or command"],
      ["drain: { command: a, onFailure: uncordon }\n", "onFailure: uncordon needs uncordon"],
      ["drain: { command: a, drane: b }\n", "drane"],
    ] as const) {
      const [first = ""] = problemsIn(() => hooksIn(text));
      expect(first)
        .to.match(/^kcore\.yaml:1:/)
        .and.to.contain(problem);
    }
  });
});
