"use strict";
// Everything that comes from the table reaches the page through textContent or a value, never as markup.
(() => {
  const source = document.getElementById("data").textContent;
  const data = { audit: false, matter: {}, annotators: [], extra: [], near: {}, ...JSON.parse(source) };
  const pictures = JSON.parse(document.getElementById("pictures").textContent); // cell → address
  const PAGE = 25;
  const PRINTED = 300;
  const UNSURE = 0.6;
  const EXCERPT = 200;
  const at = (id) => document.getElementById(id);
  const number = (value) => value.toLocaleString("en", { maximumFractionDigits: 2 });
  const percent = (value) => (value > 0.9995 ? "> 99.9 %" : `${(100 * value).toFixed(1)} %`);
  const counted = (n, what) => `${number(n)} ${what}${n === 1 ? "" : "s"}`;

  function make(tag, className, text) {
    const element = document.createElement(tag);
    if (className) element.className = className;
    if (text !== undefined) element.textContent = text;
    return element;
  }

  // -- decisions and notes: row number → text, kept over a reload where the browser allows it

  const key = `skpll-review-${hash(source)}`;
  const kept = remembered();
  const decisions = new Map(kept.decisions);
  const notes = new Map(kept.notes);
  const byNumber = new Map(data.rows.map((row) => [row.r, row]));
  let unsaved = false;

  function hash(text) {
    let value = 2166136261;
    for (let i = 0; i < text.length; i++) value = Math.imul(value ^ text.charCodeAt(i), 16777619);
    return (value >>> 0).toString(16);
  }

  function remembered() {
    try {
      const { decisions = [], notes = [] } = JSON.parse(localStorage.getItem(key) || "{}");
      return { decisions, notes };
    } catch {
      return { decisions: [], notes: [] };
    }
  }

  function keep() {
    unsaved = true;
    try {
      localStorage.setItem(key, JSON.stringify({ decisions: [...decisions], notes: [...notes] }));
    } catch {
      // a browser that keeps nothing: the decisions live as long as the page
    }
    showCount();
  }

  const view = { rows: [], page: 0, pair: null, hits: null };
  const past = []; // what each decision replaced, to take it back

  function decide(row, label, again = false) {
    if (!again) past.push([row, decisions.get(row.r) ?? null]);
    if (label === null) decisions.delete(row.r);
    else decisions.set(row.r, label);
    keep();
  }

  function annotate(row, text) {
    if (text.trim()) notes.set(row.r, text.trim());
    else notes.delete(row.r);
    keep();
  }

  function undo() {
    const last = past.pop();
    if (!last) return;
    const [row, label] = last;
    decide(row, label, true);
    let card = cardOf(row);
    if (!card && view.rows.includes(row)) {
      view.page = Math.floor(view.rows.indexOf(row) / PAGE);
      showPage();
      card = cardOf(row);
    }
    if (card) {
      card.refresh();
      card.focus();
    }
  }

  function cardOf(row) {
    return [...at("rows").children].find((card) => card.row === row);
  }

  function showCount() {
    const n = decisions.size;
    const shown = view.rows.filter((row) => decisions.has(row.r)).length;
    const all = n === shown ? "" : `, ${number(n)} in all`;
    at("count").textContent = `${number(shown)} of ${number(view.rows.length)} decided${all}`;
    at("progress").max = Math.max(view.rows.length, 1);
    at("progress").value = shown;
    at("undo").disabled = past.length === 0;
    at("download").disabled = n === 0 && notes.size === 0;
  }

  function quoted(cell) {
    return /[",\r\n]|^\s|\s$/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell;
  }

  function download() {
    const lines = [["row", "id", "label", "note", ...data.extra].join(",")];
    for (const row of [...data.rows].sort((a, b) => a.r - b.r)) {
      if (!data.audit && !decisions.has(row.r) && !notes.has(row.r)) continue;
      const cells = [String(row.r), row.i ?? "", decisions.get(row.r) ?? "", notes.get(row.r) ?? "", ...(row.e ?? [])];
      lines.push(cells.map(quoted).join(","));
    }
    const file = new Blob([lines.join("\n") + "\n"], { type: "text/csv;charset=utf-8" });
    const link = make("a");
    link.href = URL.createObjectURL(file);
    link.download = data.file;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
    unsaved = false;
  }

  // -- panels above the rows

  function showSummary() {
    at("title").textContent = data.title;
    at("kicker").textContent = data.audit ? "Audit of labels" : "Review of candidate labels";
    const [what, then, end] = data.audit
      ? [`${counted(data.rows.length, "row")} of ${number(data.total)}, drawn at random. Pick the right label of each row`, "see the accuracy", " What the model says is not shown, so that it does not lead you."]
      : [`${counted(data.total, "row")}, labels found ${data.origin}. Pick a label where you know better`, "learn again", ""];
    at("made").append(`${what}, download the decisions, and ${then} with `, make("code", "", `--decisions ${data.file}`), `.${end}`);
    at("summary-part").hidden = data.audit;
    if (data.audit) return;
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

  const ANNOTATORS = [
    ["name", "Annotator", (value) => value],
    ["votes", "Votes", number],
    ["agrees", "Agree with the label", percent],
    ["right", "Estimated to be right", percent],
  ];

  function showAnnotators() {
    at("annotators-part").hidden = !data.annotators.length;
    const heads = ANNOTATORS.map(([field, title]) => {
      const head = make("th");
      head.scope = "col";
      const button = make("button", "", title);
      button.type = "button";
      button.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") !== "descending";
        for (const other of heads) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        sortAnnotators(field, down ? -1 : 1);
      });
      head.append(button);
      return head;
    });
    at("annotators-head").append(...heads);
    at("annotators-part").addEventListener("toggle", () => heads[0].hasAttribute("aria-sort") || heads[1].firstChild.click(), { once: true });
  }

  function sortAnnotators(field, sign) {
    const collator = new Intl.Collator("en", { numeric: true });
    const order = (a, b) => (field === "name" ? collator.compare(a.name, b.name) : a[field] - b[field]);
    const lines = [...data.annotators].sort((a, b) => sign * order(a, b)).map((annotator) => {
      const line = make("tr");
      for (const [name, , show] of ANNOTATORS) line.append(make(name === "name" ? "th" : "td", "", show(annotator[name])));
      line.firstChild.scope = "row";
      return line;
    });
    at("annotators").replaceChildren(...lines);
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
    at("map-part").hidden = data.audit;
    if (data.audit) return;
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
          button.setAttribute("aria-label", `${data.classes[a]} or ${data.classes[b]}: ${counted(count, "row")}`);
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
    noted: (row) => notes.has(row.r),
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
    row.text ??= [String(row.r), row.i ?? "", ...row.c.map((code) => data.classes[code]), ...row.x].join("\n").toLowerCase();
    return row.text;
  }

  function isClose(row, [a, b]) {
    return row.k !== undefined && ((row.y === a && row.k === b) || (row.y === b && row.k === a));
  }

  function select() {
    const words = at("search").value.toLowerCase().split(/\s+/).filter(Boolean);
    const escaped = words.map((word) => word.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&"));
    view.hits = words.length ? new RegExp(`(${escaped.join("|")})`, "iu") : null;
    const fits = wanted[at("filter").value];
    const label = at("label")?.value ?? "";
    view.rows = data.rows.filter(
      (row) =>
        fits(row) &&
        (label === "" || row.y === Number(label)) &&
        (view.pair === null || isClose(row, view.pair)) &&
        words.every((word) => textOf(row).includes(word)),
    );
    const order = before[at("order")?.value ?? "need"];
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
    at("found").textContent = counted(view.rows.length, "row");
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
    const mine = make("span", "tag good");
    const body = make("div", "body");
    const side = picturesOf(row);
    const main = make("div", "main");
    if (side.childElementCount) body.append(side);
    main.append(contentOf(row));
    body.append(main);
    group.append(legendOf(row, mine), body);
    const inputs = [];
    function offer(place, code, share) {
      const { line, input } = candidateLine(row, code, share, inputs.length + 1);
      inputs.push(input);
      place.append(line);
    }
    const choices = row.c.map((code, place) => [code, row.p?.[place]]);
    if (row.p) choices.sort((a, b) => b[1] - a[1]);
    for (const [code, share] of choices) offer(main, code, share);
    if (row.m !== undefined) {
      const instead = make("div", "instead");
      const doubt = row.c.length === 1
        ? `The only candidate is wrong with a probability of ${percent(row.o)}.`
        : `All candidates are wrong with a probability of ${percent(row.o)}; the confidences above hold if one of them is right.`;
      instead.append(make("p", "", `What the model sees instead. ${doubt} The bar shows the probability of this label among all labels.`));
      offer(instead, row.m, row.q);
      main.append(instead);
    }
    if (row.w?.length) main.append(make("p", "quiet", `Columns that matter most: ${row.w.join(", ")}`));
    if (row.s?.length) main.append(make("p", "quiet", `Words that matter most: ${row.s.join(", ")}`));
    const noted = make("p", "note");
    card.row = row;
    card.append(group, noted, moreOf(row, refresh));

    function refresh() {
      const decided = decisions.get(row.r);
      card.classList.toggle("decided", decided !== undefined);
      mine.textContent = decided === undefined ? "" : `✓ you: ${decided}`;
      noted.textContent = notes.has(row.r) ? `Note: ${notes.get(row.r)}` : "";
      for (const input of inputs) input.checked = data.classes[input.value] === decided;
    }
    group.addEventListener("change", (event) => {
      if (event.target.type !== "radio") return;
      decide(row, data.classes[event.target.value]);
      refresh();
    });
    card.pick = (place) => {
      if (place >= inputs.length) return;
      decide(row, place < 0 ? null : data.classes[inputs[place].value]);
      refresh();
    };
    card.refresh = refresh;
    refresh();
    return card;
  }

  function legendOf(row, mine) {
    const legend = make("legend");
    legend.append(marked("span", "name", row.i === undefined ? `Row ${row.r}` : row.i));
    if (row.i !== undefined) legend.append(make("span", "tag", `row ${row.r}`));
    if (row.d) legend.append(make("span", "tag good", `decided by you: ${data.classes[row.y]}`));
    else if (row.p) legend.append(make("span", "tag", row.c.length === 1 ? "one candidate from the start" : `label: ${data.classes[row.y]}`));
    if (row.p && row.c.length > 1 && confidence(row) < Math.max(...row.p)) {
      legend.append(make("span", "tag warn", "another candidate has more confidence"));
    }
    if (row.m !== undefined) {
      legend.append(make("span", "tag warn", row.c.length === 1 ? "the only candidate seems to be wrong" : "all candidates seem to be wrong"));
    }
    legend.append(mine);
    return legend;
  }

  // What must be seen to judge: pictures, text in full, chosen columns, and cells that the search has found.
  function picturesOf(row) {
    const side = make("div", "side");
    data.columns.forEach(({ kind }, place) => {
      if (kind === "picture") side.append(picture(row.x[place], "picture"));
    });
    return side;
  }

  function contentOf(row) {
    const content = make("div", "content");
    const cells = make("dl", "cells");
    const several = data.columns.filter((column) => column.kind === "text").length > 1;
    data.columns.forEach(({ name, kind }, place) => {
      const text = row.x[place];
      if (kind === "text" && text) {
        if (several) content.append(make("p", "above", name));
        content.append(marked("p", "text", text));
      } else if (kind === "cell" || (!kind && view.hits?.test(text))) cells.append(cellOf(name, text));
    });
    if (cells.childElementCount) content.append(cells);
    return content;
  }

  function cellOf(name, text) {
    const cell = make("div");
    cell.append(make("dt", "", name), marked("dd", "", text));
    return cell;
  }

  // Text with the words of the search marked.
  function marked(tag, className, text) {
    const element = make(tag, className);
    if (!view.hits) element.textContent = text;
    else element.append(...text.split(view.hits).map((part, place) => (place % 2 ? make("mark", "", part) : part)));
    return element;
  }

  function picture(cell, className) {
    const address = pictures[cell];
    if (!address) return make("p", "quiet", cell ? `${cell} (picture not found)` : "no picture");
    const image = make("img", className);
    image.alt = image.title = cell.startsWith("data:") ? "picture" : cell;
    image.loading = "lazy";
    image.src = address;
    return image;
  }

  function candidateLine(row, code, share, place) {
    const line = make("label", code === row.y ? "candidate chosen" : share === undefined ? "candidate plain" : "candidate");
    const input = make("input");
    input.type = "radio";
    input.name = `row-${row.r}`;
    input.value = String(code);
    const what = marked("span", "what", data.classes[code]);
    what.title = data.classes[code];
    const name = make("span", "whole");
    if (place <= 9) name.append(make("kbd", "", String(place)));
    name.append(what);
    line.append(input, name);
    const only = row.c.length === 1 && code === row.y;
    if (share !== undefined) line.append(bar(share), make("span", "share", only ? (row.d ? "decided" : "only one") : percent(share)));
    const why = make("span", "why");
    const voters = row.v?.[code] ?? [];
    if (voters.length) why.append(make("span", "", `${counted(voters.length, "vote")}: ${voters.join(", ")}`));
    const near = row.n?.[code] ?? [];
    if (voters.length && near.length) why.append(" · ");
    if (near.length) why.append(...neighbors(near));
    if (why.childElementCount) line.append(why);
    return { line, input };
  }

  // The rows that speak for a candidate: as pictures or text, else by name.
  function neighbors(numbers) {
    const kinds = data.columns.map(({ kind }) => kind);
    const place = kinds.indexOf(kinds.includes("picture") ? "picture" : "text");
    const others = numbers.map((r) => byNumber.get(r) ?? { r, ...data.near[r] });
    const called = (row) => row.i ?? `row ${row.r}`;
    if (place < 0) return [make("span", "", `most like ${others.map(called).join(", ")}`)];
    const shown = others.map((row) => {
      const text = row.x[place];
      if (kinds[place] === "picture") {
        const image = picture(text, "thumbnail");
        image.title = image.alt = called(row);
        return image;
      }
      const quote = make("q", "", text.length > EXCERPT ? `${text.slice(0, EXCERPT)}…` : text);
      quote.title = `${called(row)}: ${text}`;
      return quote;
    });
    return [make("span", "", "most like"), ...shown];
  }

  function moreOf(row, refresh) {
    const more = make("details", "more");
    const hidden = data.columns.some(({ kind }) => !kind);
    more.append(make("summary", "", hidden ? "Another label, note, all cells" : "Another label, note"));
    more.addEventListener("toggle", fill);
    more.fill = fill;

    function fill() {
      if (more.childElementCount > 1) return;
      const label = field("Another label", "other");
      label.input.setAttribute("list", "classes");
      label.input.addEventListener("input", () => label.input.setCustomValidity(""));
      label.input.addEventListener("change", () => {
        const text = label.input.value.trim().replace(/\s+/g, " ");
        if (!text) return;
        if (!data.audit && !data.classes.includes(text)) {
          label.input.setCustomValidity("This is not one of the labels of the table.");
          label.input.reportValidity();
          return;
        }
        decide(row, text);
        refresh();
      });
      const back = make("button", "undo", "Take back");
      back.type = "button";
      back.addEventListener("click", () => {
        label.input.value = "";
        decide(row, null);
        refresh();
      });
      const note = field("Note", "remark");
      note.input.value = notes.get(row.r) ?? "";
      note.input.addEventListener("input", () => {
        annotate(row, note.input.value);
        refresh();
      });
      const box = make("div", "fields");
      box.append(label, back, note);
      more.append(box);
      if (!hidden) return;
      const cells = make("dl", "cells");
      data.columns.forEach(({ name }, place) => cells.append(cellOf(name, row.x[place])));
      more.append(cells);
    }
    return more;
  }

  function field(title, className) {
    const label = make("label", "", title);
    label.input = make("input", className);
    label.input.type = "text";
    label.append(label.input);
    return label;
  }

  // -- keys

  function onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const card = event.target.closest(".row");
    if (event.key === "Escape") (card ?? at("rows").firstElementChild)?.focus();
    if (event.target.matches("input:not([type=radio]), select, textarea")) return;
    const step = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1 }[event.key];
    const act = {
      "/": () => at("search").focus(),
      "?": () => at("keys-part").toggleAttribute("open"),
      u: undo,
      o: card && (() => reach(card, ".other")),
      n: card && (() => reach(card, ".remark")),
      c: card && (() => card.querySelector(".more").toggleAttribute("open")),
      ArrowRight: card && (() => turnFrom(1)),
      ArrowLeft: card && (() => turnFrom(-1)),
    }[event.key];
    if (act) act();
    else if (step && (card || !event.key.startsWith("Arrow"))) goOn(card, step);
    else if (card && /^[0-9]$/.test(event.key)) card.pick(Number(event.key) - 1);
    else return;
    event.preventDefault();
  }

  function reach(card, selector) {
    const more = card.querySelector(".more");
    more.open = true;
    more.fill();
    more.querySelector(selector).focus();
  }

  function turnFrom(step) {
    if ((step > 0 ? at("next") : at("previous")).disabled) return false;
    turn(step);
    at("rows").firstElementChild.focus();
    return true;
  }

  function goOn(card, step) {
    const cards = [...at("rows").children];
    const place = card ? cards.indexOf(card) + step : step > 0 ? 0 : -1;
    if (place >= 0 && place < cards.length) cards[place].focus();
    else if (card && turnFrom(step) && step < 0) at("rows").lastElementChild.focus();
  }

  // -- on paper: the chosen rows, not one page of them

  function beforePrint() {
    const shown = view.rows.slice(0, PRINTED);
    at("rows").replaceChildren(...shown.map(rowCard));
    for (const image of at("rows").querySelectorAll("img")) image.loading = "eager";
    if (shown.length < view.rows.length) at("found").textContent = `The first ${number(PRINTED)} of ${counted(view.rows.length, "row")}`;
  }

  // -- start

  showSummary();
  showAnnotators();
  showColumns();
  showMap();
  if (data.audit) for (const element of document.querySelectorAll(".model")) element.remove();
  at("rows-note").textContent = data.audit
    ? ""
    : data.rows.length < data.total
      ? `The ${number(data.rows.length)} least certain rows of ${number(data.total)}.`
      : "The least certain rows come first: low confidence, or candidates that all seem to be wrong.";
  at("label")?.append(...data.order.map((code) => new Option(data.classes[code], String(code))));
  at("classes").append(...data.order.map((code) => new Option(data.classes[code])));
  at("tools").addEventListener("submit", (event) => event.preventDefault());
  at("search").addEventListener("input", select);
  for (const id of ["filter", "label", "order"]) at(id)?.addEventListener("change", select);
  at("pair").addEventListener("click", () => choosePair(null));
  at("previous").addEventListener("click", () => turn(-1));
  at("next").addEventListener("click", () => turn(1));
  at("undo").addEventListener("click", undo);
  at("download").addEventListener("click", download);
  document.addEventListener("keydown", onKey);
  window.addEventListener("beforeprint", beforePrint);
  window.addEventListener("afterprint", showPage);
  window.addEventListener("beforeunload", (event) => {
    if (unsaved && (decisions.size || notes.size)) event.preventDefault();
  });
  select();
})();
