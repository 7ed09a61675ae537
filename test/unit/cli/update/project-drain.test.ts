import { expect } from "chai";
import { UpdateSpec } from "#rollout/spec.ts";
import { inProject } from "#support/in-project.ts";
import { withProjectDrain } from "#cli/update/project-drain.ts";

const drainFor = (drain: object, file: string) =>
  inProject({ "roster/nodes.yaml": "nodes: {}\n", "kcore.yaml": file }, (project) => {
    const spec = UpdateSpec.parse({ target: { version: "1.0.0" }, selector: { allNodes: true }, drain });
    return withProjectDrain({ spec }, project).spec.drain;
  });

describe("the drain of an update", () => {
  const commands = "drain: { command: ./out, after: { command: ./back } }\n";

  it("is the project's if the manifest enables a drain without a hook", () => {
    const drain = drainFor({ enabled: true, timeoutSeconds: 5 }, commands);
    expect(drain).to.deep.include({ timeoutSeconds: 5, command: "./out", after: { command: "./back" } });
    const state = drainFor({ enabled: true }, "drain: { state: emptied, params: { a: 1 } }\n");
    expect(state)
      .to.deep.include({ state: "emptied", params: { a: 1 } })
      .and.not.to.have.property("after");
  });

  it("asks Kubernetes by the command that an operator would type, with the node's name as its target", () => {
    const drain = drainFor({ enabled: true }, "drain: { kubernetes: { kubeconfig: /k } }\n");
    expect(drain.command).to.equal('kcore node drain "$KCORE_NODE"');
    expect(drain.after).to.deep.equal({ command: 'kcore node undrain "$KCORE_NODE"' });
  });

  it("is the manifest's own if it names a hook, and none if it is not enabled", () => {
    expect(drainFor({ enabled: true, command: "./own" }, commands).command).to.equal("./own");
    expect(drainFor({}, commands)).not.to.have.property("command");
  });
});
