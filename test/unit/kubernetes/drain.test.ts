import { expect } from "chai";
import { choosePods, podName } from "#kubernetes/drain.ts";
import type { Pod } from "#kubernetes/objects.ts";

const no = { deleteEmptyDirData: false, force: false };
const pod = (
  name: string,
  { metadata = {}, ...fields }: { metadata?: object; [field: string]: unknown } = {},
): Pod => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name, namespace: "web", ...owned("ReplicaSet"), ...metadata },
  ...fields,
});
const owned = (kind: string) => ({ ownerReferences: [{ kind, name: "owner", controller: true }] });
const emptyDir = { spec: { volumes: [{ name: "tmp", emptyDir: {} }, { name: "config" }] } };

const names = ({ leaving, staying, unpermitted }: ReturnType<typeof choosePods>) => ({
  evicted: leaving.map(podName),
  left: staying.map(({ pod: one }) => podName(one)),
  refused: unpermitted.map(({ pod: one, leave }) => `${podName(one)} ${leave}`),
});

describe("the pods that a drain evicts", () => {
  it("are those that a controller starts elsewhere", () =>
    expect(names(choosePods([pod("a")], no))).to.deep.equal({ evicted: ["web/a"], left: [], refused: [] }));

  it("are not those of DaemonSets, nor mirrors of static pods", () => {
    const mirror = pod("static", {
      metadata: { annotations: { "kubernetes.io/config.mirror": "x" }, ownerReferences: [] },
    });
    const found = choosePods([pod("ds", { metadata: owned("DaemonSet") }), mirror], { ...no, force: true });
    expect(names(found)).to.deep.equal({ evicted: [], left: ["web/ds", "web/static"], refused: [] });
  });

  it("are without leave neither those without a controller nor those with an emptyDir", () => {
    const pods = [pod("alone", { metadata: { ownerReferences: [] } }), pod("dir", emptyDir)];
    const both = { evicted: [], left: [], refused: ["web/alone force", "web/dir deleteEmptyDirData"] };
    expect(names(choosePods(pods, no))).to.deep.equal(both);
    const leave = { deleteEmptyDirData: true, force: true };
    expect(names(choosePods(pods, leave))).to.deep.equal({ evicted: ["web/alone", "web/dir"], left: [], refused: [] });
    // An owner that is no controller starts no pods.
    const loose = pod("loose", { metadata: { ownerReferences: [{ kind: "Node", name: "n1" }] } });
    expect(names(choosePods([loose], no)).refused).to.deep.equal(["web/loose force"]);
  });

  it("are those that are over or on their way out in any case", () => {
    const alone = { ownerReferences: [] };
    const pods = [
      pod("done", { metadata: alone, status: { phase: "Succeeded" } }),
      pod("broken", { ...emptyDir, status: { phase: "Failed" } }),
      pod("going", { metadata: { ...alone, deletionTimestamp: "2026-11-25T00:00:00Z" } }),
    ];
    expect(names(choosePods(pods, no)).evicted).to.deep.equal(["web/done", "web/broken", "web/going"]);
  });
});
