import { expect } from "chai";
import { missingOf } from "#kubernetes/conditions.ts";

const object = (status: object, generation = 1) => ({
  apiVersion: "apps/v1",
  kind: "Deployment",
  metadata: { name: "web", generation },
  status,
});
const available = (status: string, more: object = {}) => ({ conditions: [{ type: "Available", status, ...more }] });
const wanted = { condition: "Available", status: "True" };

describe("an awaited condition or field", () => {
  it("is met if the condition has the wanted status", () => {
    expect(missingOf(object(available("True")), wanted)).to.equal(undefined);
    expect(missingOf(object(available("False")), { condition: "Available", status: "False" })).to.equal(undefined);
  });

  it("is missing with the controller's reason otherwise", () => {
    const why = { reason: "MinimumReplicasUnavailable", message: "1 of 3" };
    expect(missingOf(object(available("False", why)), wanted)).to.equal(
      "Available is False (MinimumReplicasUnavailable: 1 of 3)",
    );
    expect(missingOf(object({}), wanted)).to.equal("it has no condition Available yet");
  });

  it("is missing if the status is of an older generation", () => {
    const text = "its controller has not seen the change yet";
    expect(missingOf(object({ ...available("True"), observedGeneration: 1 }, 2), wanted)).to.equal(text);
    expect(missingOf(object(available("True", { observedGeneration: 1 }), 2), wanted)).to.equal(text);
    expect(missingOf(object({ ...available("True"), observedGeneration: 2 }, 2), wanted)).to.equal(undefined);
  });

  it("is missing in a status of another form", () => {
    for (const conditions of [null, "Available", { Available: true }, [null, 7]])
      expect(missingOf(object({ conditions }), wanted)).to.equal("it has no condition Available yet");
  });

  it("may be a field, in lists by its number", () => {
    const ingress = object({ loadBalancer: { ingress: [{ ip: "192.0.2.1" }] }, phase: "Pending" });
    expect(missingOf(ingress, { field: "status.loadBalancer.ingress.0.ip" })).to.equal(undefined);
    expect(missingOf(ingress, { field: "status.phase", value: "Running" })).to.equal(
      'status.phase is "Pending", not "Running"',
    );
    expect(missingOf(ingress, { field: "status.ready.x" })).to.equal("status.ready.x is not there");
  });
});
