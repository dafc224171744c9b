"use strict";
// Everything that comes from the table reaches the page through textContent or a value, never as markup.
(() => {
  const source = document.getElementById("data").textContent;
  const data = JSON.parse(source);
  const PAGE = 25;
  const UNSURE = 0.6;
  const at = (id) => document.getElementById(id);
  const number = (value) => value.toLocaleString("en", { maximumFractionDigits: 2 });
  const percent = (value) => `${(100 * value).toFixed(1)} %`;

  function make(tag, className, text) {
    const element = document.createElement(tag);
    if (className) element.className = className;
    if (text !== undefined) element.textContent = text;
    return element;
  }

  // -- decisions: row number → class number, kept over a reload where the browser allows it

  const key = `skpll-review-${hash(source)}`;
  const decisions = new Map(remembered());
  let saved = decisions.size;

  function hash(text) {
    let value = 2166136261;
    for (let i = 0; i < text.length; i++) value = Math.imul(value ^ text.charCodeAt(i), 16777619);
    return (value >>> 0).toString(16);
  }

  function remembered() {
    try {
      return JSON.parse(localStorage.getItem(key) || "[]");
    } catch {
      return [];
    }
  }

  const view = { rows: [], page: 0, pair: null };
  const past = []; // what each decision replaced, to take it back

  function decide(row, code, again = false) {
    if (!again) past.push([row, decisions.get(row.r) ?? null]);
    if (code === null) decisions.delete(row.r);
    else decisions.set(row.r, code);
    saved = -1;
    try {
      localStorage.setItem(key, JSON.stringify([...decisions]));
    } catch {
      // a browser that keeps nothing: the decisions live as long as the page
    }
    showCount();
  }

  function undo() {
    const last = past.pop();
    if (!last) return;
    const [row, code] = last;
    decide(row, code, true);
    const card = [...at("rows").children].find((card) => card.row === row);
    if (card) {
      card.refresh();
      card.focus();
    }
  }

  function showCount() {
    const n = decisions.size;
    const shown = view.rows.filter((row) => decisions.has(row.r)).length;
    const all = n === shown ? "" : `, ${number(n)} in all`;
    at("count").textContent = `${number(shown)} of ${number(view.rows.length)} decided${all}`;
    at("progress").max = Math.max(view.rows.length, 1);
    at("progress").value = shown;
    at("download").disabled = n === 0;
  }

  function quoted(cell) {
    return /[",\r\n]|^\s|\s$/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell;
  }

  function download() {
    const byNumber = new Map(data.rows.map((row) => [row.r, row]));
    const lines = ["row,id,label"];
    for (const [r, code] of [...decisions].sort((a, b) => a[0] - b[0])) {
      const row = byNumber.get(r);
      lines.push([String(r), row.i ?? "", data.classes[code]].map(quoted).join(","));
    }
    const file = new Blob([lines.join("\n") + "\n"], { type: "text/csv;charset=utf-8" });
    const link = make("a");
    link.href = URL.createObjectURL(file);
    link.download = "decisions.csv";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
    saved = decisions.size;
  }

  // -- summary and map

  function showSummary() {
    at("title").textContent = data.title;
    at("made").textContent = `Labels found with ${data.method}. Pick a label where you know better, download the decisions, and learn again with --decisions decisions.csv.`;
    const s = data.summary;
    const figures = [
      ["Rows", number(s.rows), `${number(s.unanimous)} with one candidate from the start`],
      ["Labels", number(s.classes), ""],
      ["Candidates per row, before", number(s.candidates_before), ""],
      ["Candidates per row, after", number(s.candidates_after), "effective"],
      ["Mean confidence", percent(s.mean_confidence), "what the model believes; no accuracy was checked"],
      ["Suspects", number(data.contradictions), "rows whose candidates all seem to be wrong"],
    ];
    if (s.decided) figures.splice(1, 0, ["Decided by you", number(s.decided), "earlier, and taken as certain"]);
    for (const [name, value, note] of figures) {
      const box = make("div");
      const figure = make("dd", "", value);
      if (note) figure.append(make("small", "", note));
      box.append(make("dt", "", name), figure);
      at("summary").append(box);
    }
  }

  function showAnnotators() {
    at("annotators-part").hidden = !data.annotators.length;
    for (const { name, votes, agrees, right } of data.annotators) {
      const line = make("tr");
      const head = make("th", "", name);
      head.scope = "row";
      line.append(head, make("td", "", number(votes)), make("td", "", percent(agrees)), make("td", "", percent(right)));
      at("annotators").append(line);
    }
  }

  function showColumns() {
    const columns = Object.entries(data.matter).slice(0, 10);
    at("columns-part").hidden = !columns.length;
    const peak = Math.max(...columns.map((entry) => entry[1]), 1e-9);
    for (const [name, effect] of columns) {
      const line = make("li");
      line.append(make("span", "what", name), bar(Math.max(effect, 0) / peak), make("span", "share", percent(effect)));
      at("columns").append(line);
    }
  }

  function bar(share) {
    const track = make("span", "track");
    const fill = make("span", "fill");
    fill.style.width = `${100 * share}%`;
    track.append(fill);
    track.setAttribute("aria-hidden", "true");
    return track;
  }

  function showMap() {
    const { classes, counts } = data.map;
    if (!classes.length) {
      at("map-note").textContent = "In no row do two candidates come close to each other.";
      return;
    }
    at("map-note").textContent = "Rows in which the runner-up has at least half the confidence of the label, for each pair of labels. Choose a field to see its rows.";
    const peak = Math.max(...counts.flat());
    const long = classes.some((code) => data.classes[code].length > 5);
    const table = make("table", long ? "upright" : "");
    const head = make("tr");
    head.append(make("td", "self"));
    for (const code of classes) {
      const cell = make("th", "", data.classes[code]);
      cell.scope = "col";
      cell.title = data.classes[code];
      head.append(cell);
    }
    const top = make("thead");
    top.append(head);
    const body = make("tbody");
    classes.forEach((a, i) => {
      const line = make("tr");
      const name = make("th", "", data.classes[a]);
      name.scope = "row";
      name.title = data.classes[a];
      line.append(name);
      classes.forEach((b, j) => {
        const cell = make("td", a === b ? "self" : "");
        const count = counts[i][j];
        if (count) {
          cell.style.backgroundColor = `rgba(var(--heat), ${0.08 + (0.42 * count) / peak})`;
          const button = make("button", "", number(count));
          button.type = "button";
          button.setAttribute("aria-label", `${data.classes[a]} or ${data.classes[b]}: ${count} rows`);
          button.addEventListener("click", () => choosePair([a, b]));
          cell.append(button);
        }
        line.append(cell);
      });
      body.append(line);
    });
    table.append(top, body);
    at("map").append(table);
  }

  // -- which rows, in which order

  const wanted = {
    all: () => true,
    unsure: (row) => row.c.length > 1 && confidence(row) < UNSURE,
    contradicted: (row) => row.m !== undefined,
    ambiguous: (row) => row.c.length > 1,
    certain: (row) => row.c.length === 1 && !row.d,
    decided: (row) => decisions.has(row.r) || row.d === 1,
    open: (row) => !decisions.has(row.r) && !row.d,
  };

  const before = {
    need: null, // as the rows come
    row: (a, b) => a.r - b.r,
    sure: (a, b) => confidence(b) - confidence(a),
  };

  function confidence(row) {
    return row.p[row.c.indexOf(row.y)];
  }

  function textOf(row) {
    row.text ??= [String(row.r), row.i ?? "", ...row.c.map((code) => data.classes[code]), ...(row.x ?? [])].join("\n").toLowerCase();
    return row.text;
  }

  function isClose(row, [a, b]) {
    return row.k !== undefined && ((row.y === a && row.k === b) || (row.y === b && row.k === a));
  }

  function select() {
    const words = at("search").value.toLowerCase().split(/\s+/).filter(Boolean);
    const fits = wanted[at("filter").value];
    const label = at("label").value;
    view.rows = data.rows.filter(
      (row) =>
        fits(row) &&
        (label === "" || row.y === Number(label)) &&
        (view.pair === null || isClose(row, view.pair)) &&
        words.every((word) => textOf(row).includes(word)),
    );
    const order = before[at("order").value];
    if (order) view.rows.sort(order);
    view.page = 0;
    showPage();
    showCount();
  }

  function choosePair(pair) {
    view.pair = pair;
    const button = at("pair");
    button.hidden = pair === null;
    if (pair) button.textContent = `${data.classes[pair[0]]} or ${data.classes[pair[1]]} ✕`;
    if (pair) button.setAttribute("aria-label", `${button.textContent}: show all pairs again`);
    select();
    if (pair) at("rows-heading").scrollIntoView();
  }

  // -- one page of rows

  function showPage() {
    const pages = Math.max(1, Math.ceil(view.rows.length / PAGE));
    view.page = Math.min(Math.max(view.page, 0), pages - 1);
    const shown = view.rows.slice(view.page * PAGE, (view.page + 1) * PAGE);
    at("rows").replaceChildren(...shown.map(rowCard));
    at("found").textContent = view.rows.length === 1 ? "1 row" : `${number(view.rows.length)} rows`;
    at("page").textContent = `Page ${number(view.page + 1)} of ${number(pages)}`;
    at("previous").disabled = view.page === 0;
    at("next").disabled = view.page === pages - 1;
    at("pages").hidden = pages === 1;
  }

  function turn(step) {
    view.page += step;
    showPage();
    at("rows-heading").scrollIntoView();
  }

  function rowCard(row) {
    const card = make("li", "row");
    card.tabIndex = -1;
    const group = make("fieldset");
    const legend = make("legend");
    legend.append(make("span", "name", row.i === undefined ? `Row ${row.r}` : row.i));
    if (row.i !== undefined) legend.append(make("span", "tag", `row ${row.r}`));
    if (row.d) legend.append(make("span", "tag good", `decided by you: ${data.classes[row.y]}`));
    else legend.append(make("span", "tag", row.c.length === 1 ? "certain from the start" : `label: ${data.classes[row.y]}`));
    if (row.c.length > 1 && confidence(row) < Math.max(...row.p)) {
      legend.append(make("span", "tag warn", "another candidate has more confidence"));
    }
    if (row.m !== undefined) {
      legend.append(make("span", "tag warn", row.c.length === 1 ? "the only candidate seems to be wrong" : "all candidates seem to be wrong"));
    }
    const mine = make("span", "tag good");
    legend.append(mine);
    group.append(legend);
    const choices = row.c.map((code, place) => [code, row.p[place]]).sort((a, b) => b[1] - a[1]);
    if (row.m !== undefined) choices.push([row.m, row.q]);
    const inputs = choices.map(([code, share], place) => {
      const { line, input } = candidateLine(row, code, share, place + 1);
      group.append(line);
      return input;
    });
    if (row.w?.length) group.append(make("p", "quiet", `Columns that matter most: ${row.w.join(", ")}`));
    card.row = row;
    card.append(group, moreOf(row, refresh));

    function refresh() {
      const decided = decisions.get(row.r);
      card.classList.toggle("decided", decided !== undefined);
      mine.textContent = decided === undefined ? "" : `✓ you: ${data.classes[decided]}`;
      for (const input of inputs) input.checked = Number(input.value) === decided;
    }
    group.addEventListener("change", (event) => {
      if (event.target.type !== "radio") return;
      decide(row, Number(event.target.value));
      refresh();
    });
    card.pick = (place) => {
      if (place >= inputs.length) return;
      decide(row, place < 0 ? null : Number(inputs[place].value));
      refresh();
    };
    card.refresh = refresh;
    refresh();
    return card;
  }

  function candidateLine(row, code, share, place) {
    const line = make("label", code === row.y ? "candidate chosen" : "candidate");
    const input = make("input");
    input.type = "radio";
    input.name = `row-${row.r}`;
    input.value = String(code);
    const what = make("span", "what", data.classes[code]);
    what.title = data.classes[code];
    const name = make("span", "whole");
    if (place <= 9) name.append(make("kbd", "", String(place)));
    name.append(what);
    line.append(input, name, bar(share), make("span", "share", percent(share)));
    const notes = [];
    if (code === row.m) notes.push("what the model sees instead");
    const voters = row.v?.[code] ?? [];
    if (voters.length) notes.push(`${voters.length} ${voters.length === 1 ? "vote" : "votes"}: ${voters.join(", ")}`);
    const near = row.n?.[code] ?? [];
    if (near.length) notes.push(`most like ${near.join(", ")}`);
    if (notes.length) line.append(make("span", "why", notes.join(" · ")));
    return { line, input };
  }

  function moreOf(row, refresh) {
    const more = make("details");
    more.append(make("summary", "", data.columns.length ? "Cells, another label, take back" : "Another label, take back"));
    more.addEventListener("toggle", () => {
      if (!more.open || more.childElementCount > 1) return;
      if (data.columns.length) {
        const cells = make("dl", "cells");
        data.columns.forEach((name, place) => {
          const cell = make("div");
          cell.append(make("dt", "", name), make("dd", "", row.x[place]));
          cells.append(cell);
        });
        more.append(cells);
      }
      const box = make("div", "other");
      const label = make("label", "", "Another label");
      const input = make("input");
      input.type = "text";
      input.setAttribute("list", "classes");
      label.append(input);
      const back = make("button", "undo", "Take back");
      back.type = "button";
      input.addEventListener("input", () => input.setCustomValidity(""));
      input.addEventListener("change", () => {
        const code = data.classes.indexOf(input.value.trim());
        if (code < 0) {
          input.setCustomValidity("This is not one of the labels of the table.");
          input.reportValidity();
          return;
        }
        decide(row, code);
        refresh();
      });
      back.addEventListener("click", () => {
        input.value = "";
        decide(row, null);
        refresh();
      });
      box.append(label, back);
      more.append(box);
    });
    return more;
  }

  // -- keys

  function onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const typing = event.target.matches("input:not([type=radio]), select, textarea");
    if (typing) return;
    const card = event.target.closest(".row");
    if (event.key === "/") {
      event.preventDefault();
      at("search").focus();
    } else if (["j", "ArrowDown", "k", "ArrowUp"].includes(event.key)) {
      if (!card && event.key.startsWith("Arrow")) return; // the page scrolls
      event.preventDefault();
      goOn(card, event.key === "j" || event.key === "ArrowDown" ? 1 : -1);
    } else if (card && ["ArrowLeft", "ArrowRight"].includes(event.key)) {
      event.preventDefault();
      const step = event.key === "ArrowRight" ? 1 : -1;
      if ((step > 0 ? at("next") : at("previous")).disabled) return;
      turn(step);
      at("rows").firstElementChild.focus();
    } else if (event.key === "u") {
      undo();
    } else if (card && /^[0-9]$/.test(event.key)) {
      card.pick(Number(event.key) - 1);
    }
  }

  function goOn(card, step) {
    const cards = [...at("rows").children];
    const place = card ? cards.indexOf(card) + step : step > 0 ? 0 : -1;
    if (place >= 0 && place < cards.length) {
      cards[place].focus();
    } else if (card && !(step > 0 ? at("next") : at("previous")).disabled) {
      turn(step);
      const list = at("rows");
      (step > 0 ? list.firstElementChild : list.lastElementChild).focus();
    }
  }

  // -- start

  showSummary();
  showAnnotators();
  showColumns();
  showMap();
  at("rows-note").textContent =
    data.rows.length < data.summary.rows
      ? `The ${number(data.rows.length)} least certain rows of ${number(data.summary.rows)}.`
      : "The least certain rows come first: low confidence, or candidates that all seem to be wrong.";
  at("label").append(...data.order.map((code) => new Option(data.classes[code], String(code))));
  at("classes").append(...data.order.map((code) => new Option(data.classes[code])));
  at("tools").addEventListener("submit", (event) => event.preventDefault());
  at("search").addEventListener("input", select);
  for (const id of ["filter", "label", "order"]) at(id).addEventListener("change", select);
  at("pair").addEventListener("click", () => choosePair(null));
  at("previous").addEventListener("click", () => turn(-1));
  at("next").addEventListener("click", () => turn(1));
  at("download").addEventListener("click", download);
  document.addEventListener("keydown", onKey);
  window.addEventListener("beforeunload", (event) => {
    if (decisions.size && saved !== decisions.size) event.preventDefault();
  });
  select();
})();
