import { expect } from "chai";
import { bastionHooks } from "#rollout/hooks.ts";
import { UpdateSpec } from "#rollout/spec.ts";

describe("the hooks of an update", () => {
  const specOf = (timeoutSeconds: number): UpdateSpec =>
    UpdateSpec.parse({
      target: { version: "0.4.0" },
      selector: { allNodes: true },
      drain: { enabled: true, timeoutSeconds, command: "./drain.sh", after: { command: "./undrain.sh" } },
      healthGates: [
        { name: "web", command: "./web.sh", withinSeconds: 60 },
        { name: "disk", nodeCommand: "true" },
      ],
    });

  it("are those of the bastion; a drain ends shortly before the controller's time limit", () => {
    const timesOf = (spec: UpdateSpec) =>
      bastionHooks(spec).map(({ name, limitSeconds, spareSeconds }) => [name, limitSeconds, spareSeconds]);
    expect(timesOf(specOf(900))).to.deep.equal([
      ["drain", 900, 5],
      ["gate web", 60, 0],
      ["undrain", 900, 0],
    ]);
    expect(timesOf(specOf(10))[0]).to.deep.equal(["drain", 10, 2]);
  });

  it("include the undrain of a node that an earlier generation drained", () => {
    const { drain, ...spec } = specOf(900);
    const names = bastionHooks({ ...spec, drain: { ...drain, enabled: false } }).map(({ name }) => name);
    expect(names).to.deep.equal(["gate web", "undrain"]);
  });
});
