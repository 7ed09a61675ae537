/* oxlint-disable typescript/no-misused-promises, typescript/no-unsafe-argument, typescript/no-unsafe-assignment, typescript/no-unsafe-call, typescript/no-unsafe-member-access, typescript/no-unsafe-return -- plain JavaScript for a browser: no type of the DOM is known here */
// Replaces changed parts of the page with HTML that the server has escaped, and lets the times of running work go on.
"use strict";
(() => {
  const { news, version } = document.body.dataset;
  const byId = (id) => document.getElementById(id);
  const elementOf = (source) => {
    const template = document.createElement("template");
    template.innerHTML = source;
    return template.content.firstElementChild;
  };

  // ---- times that go on ---------------------------------------------------------------------------------------------

  // Milliseconds by which this machine's clock is ahead of the bastion's, which counts.
  let ahead = Date.now() - Number(document.body.dataset.now);
  const axis = byId("axis");
  const from = Number(axis?.dataset.from);
  let span = axis && { from, to: from + Number(axis.dataset.long), isOver: byId("lanes").dataset.over !== undefined };
  const showTimes = () => {
    const now = Date.now() - ahead;
    for (const cell of document.querySelectorAll("[data-since]")) {
      const whole = Math.max(0, Math.floor((now - Number(cell.dataset.since)) / 1000));
      const [minutes, seconds] = [Math.floor(whole / 60), whole % 60];
      const text = minutes === 0 ? `${seconds} s` : `${minutes} min ${String(seconds).padStart(2, "0")} s`;
      if (cell.textContent !== text) cell.textContent = text;
    }
    if (!span) return;
    // Bars of running stages grow up to now.
    for (const bar of document.querySelectorAll("#stages [data-from]")) {
      const [start, wide] = [Number(bar.dataset.from), bar.ownerSVGElement.viewBox.baseVal.width];
      const long = Math.max(1, Math.round(Math.min(1, (now - span.from) / (span.to - span.from)) * wide) - start);
      bar.setAttribute("d", `M${start} 7h${long}v6h-${long}z`);
    }
    const share = span.isOver ? 1 : Math.min(1, Math.max(0, (now - span.from) / (span.to - span.from)));
    byId("lanes")?.style.setProperty("--now", share.toFixed(4));
  };
  setInterval(showTimes, 500);

  // ---- news ---------------------------------------------------------------------------------------------------------

  // An open row stays open; report-page.js loads its new body.
  const putRow = (row, next) => {
    const hadFocus = row.firstElementChild === document.activeElement;
    for (const { name, value } of next.attributes) if (name !== "open") row.setAttribute(name, value);
    row.firstElementChild.replaceWith(next.firstElementChild);
    if (hadFocus) row.firstElementChild.focus({ preventScroll: true });
  };
  const putOrder = (rows, order) => {
    const focused = document.activeElement;
    let at = rows.firstElementChild;
    for (const id of order) {
      const row = byId(id);
      if (row === at) at = at.nextElementSibling;
      else if (row) rows.insertBefore(row, at);
    }
    if (focused !== document.activeElement && rows.contains(focused)) focused.focus({ preventScroll: true });
  };
  const showParts = (parts) => {
    const changed = [];
    let rowsPart;
    for (const [id, source] of parts) {
      if (id === "rows") {
        rowsPart = JSON.parse(source);
        continue;
      }
      const [old, next] = [byId(id), elementOf(source)];
      if (!old) {
        if (next?.matches(".lane")) byId("rows")?.append(next);
        continue;
      }
      if (old.matches(".lane")) {
        putRow(old, next);
        changed.push(old);
      } else {
        // A link that had the focus gets it back.
        const link = old.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
        old.replaceWith(next);
        if (link !== null) [...next.querySelectorAll("a")].find((a) => a.getAttribute("href") === link)?.focus();
      }
    }
    if (rowsPart) {
      span = rowsPart;
      // A page that was opened before the run began has no element for rows.
      if (!axis) return rowsPart.order.length > 0 && location.reload();
      putOrder(byId("rows"), rowsPart.order);
    }
    // Bars are in milliseconds, so a longer axis changes only the width that their drawings span (bars.ts).
    const box = span && `0 0 ${span.to - span.from} 20`;
    for (const bars of document.querySelectorAll("#rows > .lane > summary .bars"))
      if (bars.getAttribute("viewBox") !== box) bars.setAttribute("viewBox", box);
    if (byId("lanes"))
      byId("lanes").dispatchEvent(
        new CustomEvent("kcore:news", { detail: { changed, ...(span && { long: span.to - span.from }) } }),
      );
    showTimes();
  };

  if (news === undefined) return;
  const link = byId("link");
  const showLink = (text, isLost) => {
    if (link.textContent !== text) link.textContent = text;
    link.classList.toggle("lost", isLost);
  };
  const source = new EventSource(`${news}${news.includes("?") ? "&" : "?"}from=${encodeURIComponent(version)}`);
  source.addEventListener("open", () => showLink(span?.isOver ? "" : "live", false));
  source.addEventListener("error", () => showLink("not connected: what stands here may be old", true));
  source.addEventListener("message", ({ data }) => {
    const { now, parts } = JSON.parse(data);
    ahead = Date.now() - now;
    showParts(parts);
    showLink(span?.isOver ? "" : "live", false);
  });
  showTimes();
})();
