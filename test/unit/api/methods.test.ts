import { expect } from "chai";
import { findMethod, isAudited, methods, type MethodName } from "#api/methods.ts";
import { authorize } from "#controller/server/access.ts";
import { roles, type Role } from "#pki/identity.ts";

/** The roles that may call each method; a method that is not listed here fails the test below. */
const verdicts: Readonly<Record<MethodName, readonly Role[]>> = {
  health: ["controller", "node", "operator"],
  ready: ["controller", "node", "operator"],
  metrics: ["controller", "operator"],
  registerNode: ["node"],
  heartbeat: ["node"],
  goodbye: ["node"],
  renewChallenge: ["node"],
  renew: ["node"],
  listNodes: ["controller", "operator"],
  getNode: ["controller", "node", "operator"],
  findNode: ["controller", "operator"],
  approveNode: ["operator"],
  rejectNode: ["operator"],
  setLabels: ["operator"],
  setTaints: ["operator"],
  setRoles: ["operator"],
  setExpected: ["operator"],
  removeNode: ["operator"],
  listControllers: ["controller", "operator"],
  registerController: ["operator"],
  removeController: ["operator"],
  leave: ["operator"],
  replicationStatus: ["controller", "operator"],
  replicate: ["controller"],
  listConflicts: ["controller", "operator"],
  ackConflict: ["operator"],
  takeLoser: ["operator"],
  listAudit: ["operator"],
  listWrites: ["operator"],
  listCertificates: ["controller", "operator"],
  recordCertificate: ["operator"],
  revoke: ["operator"],
  subCaRequest: ["operator"],
  subCaInstall: ["operator"],
  certificateRequest: ["operator"],
  certificateInstall: ["operator"],
  listObjects: ["controller", "operator"],
  getObject: ["controller", "operator"],
  putObject: ["operator"],
  removeObject: ["operator"],
  getConfig: ["controller", "operator"],
  putConfig: ["operator"],
  exchangeUpdate: ["node"],
  listUpdates: ["controller", "operator"],
  getUpdate: ["controller", "operator"],
  planUpdate: ["operator"],
  applyUpdate: ["operator"],
  approveUpdate: ["operator"],
  cancelUpdate: ["operator"],
  rollbackUpdate: ["operator"],
  promoteUpdate: ["operator"],
  takeOverUpdate: ["operator"],
  attendUpdate: ["operator"],
  answerHook: ["operator"],
  removeUpdate: ["operator"],
  listBundles: ["controller", "operator"],
  putBundle: ["operator"],
  bundle: ["controller", "node", "operator"],
  backup: ["operator"],
  watch: ["operator"],
};

const names = Object.keys(methods) as MethodName[];

function isAllowed(name: MethodName, role: Role, id = ""): boolean {
  try {
    authorize(name, { id: "a", identity: { cluster: "lab", role, id: "a" } }, id);
    return true;
  } catch {
    return false;
  }
}

describe("the controllers' API", () => {
  it("S-16: gives the expected verdict for every method and role", () => {
    const found = Object.fromEntries(names.map((name) => [name, roles.filter((role) => isAllowed(name, role))]));
    expect(found).to.deep.equal(verdicts);
  });

  it("S-12: lets a node ask about itself only, and others about any", () => {
    expect([isAllowed("getNode", "node", "a"), isAllowed("getNode", "node", "b")]).to.deep.equal([true, false]);
    expect(isAllowed("getNode", "operator", "b")).to.equal(true);
  });

  it("S-12: ties every method that a node may ask to the node's own id, but for what tells of no node", () => {
    const open = names.filter((name) => (methods[name].roles as readonly Role[]).includes("node"));
    expect(open.filter((name) => !("ownNodeOnly" in methods[name]))).to.deep.equal(["health", "ready", "bundle"]);
  });

  it("S-12: answers nothing but what admits a node before it is approved", () => {
    const open = names.filter((name) => (methods[name].roles as readonly Role[]).includes("node"));
    const early = open.filter((name) => !("approvedOnly" in methods[name]));
    expect(early).to.deep.equal(["health", "ready", "registerNode", "heartbeat", "goodbye", "getNode"]);
  });

  it("S-27: leaves a line in the audit of each change, but of what comes all the time or changes nothing", () => {
    const untold = names.filter((name) => methods[name].verb === "POST" && !isAudited(name));
    expect(untold).to.deep.equal(["heartbeat", "renewChallenge", "exchangeUpdate", "planUpdate", "watch"]);
    expect(names.filter((name) => methods[name].verb === "GET" && isAudited(name))).to.deep.equal(["backup"]);
    expect([isAudited("putBundle", { whole: false }), isAudited("putBundle", { whole: true })]).to.deep.equal([
      false,
      true,
    ]);
  });

  it("finds every method by its verb and path, and takes the id from the path", () => {
    for (const name of names) {
      const found = findMethod(methods[name].verb, methods[name].path.replace("{id}", "n-1"));
      expect(found).to.deep.equal(methods[name].path.includes("{id}") ? { name, id: "n-1" } : { name });
    }
  });

  it("tells an unknown path from a wrong verb", () => {
    expect(findMethod("GET", "/v1/secrets")).to.deep.equal({ wrongVerb: false });
    expect(findMethod("GET", "/v1/nodes/../x/approve")).to.deep.equal({ wrongVerb: false });
    expect(findMethod("DELETE", "/v1/nodes")).to.deep.equal({ wrongVerb: true });
  });
});
