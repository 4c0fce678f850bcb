CREATE VIEW often AS SELECT k, window.start AS start, count(*) AS n, median(v) AS half
    FROM stream [RANGE 30 SECONDS SLIDE AT MOST 15 SECONDS] GROUP BY k;
CREATE VIEW seldom AS SELECT window.start AS start, max(v) AS top
    FROM stream [RANGE 45 SECONDS SLIDE AT MOST 30 SECONDS PRIORITY 2] WHERE v > 10;
